// Modules that the built program loads before it listens: each file and package delays the start.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ROOT, follow, startListeningProxy, startProgram } from '../support/built-proxy.js';

const { dependencies, engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>;
  engines: { node: string };
};

/** Runs a program, and returns the files that it loads, taken from V8 coverage data. */
async function filesLoadedBy(run: (env: Record<string, string>) => Promise<unknown>): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'proxy-start-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  await run({ UPSTREAM_URL: 'http://127.0.0.1:9', NODE_V8_COVERAGE: folder });
  const [name = ''] = readdirSync(folder);
  const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as { result: { url: string }[] };
  return result.filter(({ url }) => url.startsWith('file:')).map(({ url }) => fileURLToPath(url));
}

/**
 * Returns the packages bundled into a file, taken from the comments before their code. A package of one
 * small file may have no comment.
 */
const packagesIn = (file: string): string[] =>
  [...readFileSync(file, 'utf8').matchAll(/^\/\/ node_modules\/((?:@[^/]+\/)?[^/]+)/gm)].map(
    ([, name = '']) => name,
  );

function startInRemoved(args: string): ReturnType<typeof follow> {
  const folder = mkdtempSync(join(tmpdir(), 'removed-'));
  const program = `${process.execPath} ${join(ROOT, 'dist/main.js')}`;
  const command = `cd ${folder} && rmdir ${folder} && exec ${program} ${args}`;
  return follow(spawn('/bin/sh', ['-c', command], { env: {}, stdio: ['ignore', 'pipe', 'pipe'] }));
}

const FOLDER_REMOVED =
  'The working folder was removed: change to another one, such as with `cd /`, and start again.\n';

describe('start of the built program', () => {
  test('loads few files, including the required libraries, and none from node_modules', async () => {
    const files = await filesLoadedBy(async (env) => (await startListeningProxy(env)).stop());
    expect(files.filter((file) => !file.startsWith(join(ROOT, 'dist')))).toEqual([]);
    expect(files.length).toBeLessThan(29);
    // A single other character doubles the memory of a file.
    expect(files.filter((file) => /[^\0-\x7f]/.test(readFileSync(file, 'utf8')))).toEqual([]);
    const packages = new Set(files.flatMap(packagesIn));
    expect(Object.keys(dependencies).filter((name) => packages.has(name))).toEqual([
      'close-with-grace',
      'express',
      'http-proxy-middleware',
      'ipaddr.js',
      'lru-cache',
      'negotiator',
      'pino',
      'prom-client',
      'proxy-addr',
      'undici',
      'zod',
    ]);
  });

  describe('with an older Node.js', () => {
    test.each(['v18.20.8', 'v20.18.3'])(
      '%s names the required version and imports nothing',
      async (version) => {
        const asVersion = `data:text/javascript,Object.defineProperty(process,'version',{value:'${version}'})`;
        let stderr = '';
        const files = await filesLoadedBy(async (env) => {
          const program = startProgram(['--import', asVersion, 'dist/main.js', '--version'], env);
          expect(await program.exited).toEqual({ code: 2, signal: null });
          stderr = program.stderr();
        });
        const required = engines.node.replace('>=', '');
        expect(stderr).toBe(
          `Node.js ${required} or later is required; ${process.execPath} is ${version.slice(1)}.\n`,
        );
        expect(files).toEqual([join(ROOT, 'dist/main.js')]);
      },
    );
  });

  test('in a folder that was removed names the remedy', async () => {
    const { exited, stderr } = startInRemoved('');
    expect((await exited).code).toBe(2);
    expect(stderr()).toBe(FOLDER_REMOVED);
  });

  test.each(['check-config', 'site-record', 'bench 21.T1/a', 'resolve 21.T1/a --direct http://127.0.0.1:9'])(
    '%s in a folder that was removed names the remedy',
    async (command) => {
      const { exited, stderr } = startInRemoved(command);
      expect([(await exited).code, stderr()]).toEqual([1, FOLDER_REMOVED]);
    },
  );

  test('in a folder that was removed runs commands that need none, such as `purge`', async () => {
    const run = startInRemoved('purge 21.T1/a --admin http://127.0.0.1:9');
    expect([(await run.exited).code, run.stderr()]).toEqual([1, expect.stringContaining('ECONNREFUSED')]);
  });

  test('prints no deprecation of an API that a library uses, which an operator cannot change', async () => {
    const warn = `const { write } = process.stdout;
      process.stdout.write = (...given) => {
        process.emitWarning('old', 'DeprecationWarning');
        return write.apply(process.stdout, given);
      };`;
    const { exited, stderr } = startProgram(
      ['--import', `data:text/javascript,${encodeURIComponent(warn)}`, 'dist/main.js', '--version'],
      {},
    );
    expect([(await exited).code, stderr()]).toEqual([0, '']);
  });

  test('listens with source maps, as the services and the image start it', async () => {
    const env = { UPSTREAM_URL: 'http://127.0.0.1:9', HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0' };
    const { stdout } = startProgram(['--enable-source-maps', 'dist/main.js'], env);
    await expect.poll(stdout).toContain('"msg":"listening"');
  });

  test('maps stack traces to the sources', async () => {
    const program = `import('${join(ROOT, 'dist/config.js')}').then(({ loadConfig }) => loadConfig())`;
    const { exited, stderr } = startProgram(['--enable-source-maps', '--eval', program], {});
    expect((await exited).code).toBe(1);
    expect(stderr()).toMatch(/src\/config\/load\.ts:\d+/);
  });
});
