// The npm package as a user installs it: files, command, and types for embedding programs.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ask } from '../support/ask.js';
import { ROOT, follow } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { freePort } from '../support/free-port.js';

interface Package {
  name: string;
  version: string;
  dependencies: Record<string, string>;
  bin: Record<string, string>;
}
interface Lock {
  packages: Record<string, { version: string; dev?: boolean; devOptional?: boolean }>;
}
interface Sbom {
  metadata: { component: object };
  components: { 'bom-ref': string; hashes?: object[]; licenses?: object[] }[];
  dependencies: { dependsOn: string[] }[];
}
interface Packed {
  filename: string;
  files: { path: string }[];
}

const demo = await startDemoServer();
const folder = mkdtempSync(join(tmpdir(), 'proxy-package-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const jsonOf = (name: string): unknown => JSON.parse(readFileSync(join(ROOT, name), 'utf8'));
const write = (name: string, content: object | string): void => {
  writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
};

function run(command: string, args: string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  expect(status, stdout + stderr).toBe(0);
  return stdout;
}

const packed = ((): Packed => {
  // `prepack` would rebuild the existing build while other tests use it.
  for (const script of ['config/write-types.js', 'config/write-sbom.js'])
    run(process.execPath, [script], ROOT);
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
  const [first] = JSON.parse(run('npm', args, ROOT)) as [Packed];
  return first;
})();

const lockedPackages = Object.entries((jsonOf('package-lock.json') as Lock).packages).filter(
  ([path, { dev, devOptional }]) => path !== '' && dev !== true && devOptional !== true,
);

/** Installs the locked versions from the cache of `npm ci`, without network access if possible. */
function install(): void {
  const { version, dependencies, bin } = jsonOf('package.json') as Package;
  const wanted = { 'handle-resolver-proxy': `file:${packed.filename}` };
  const itself = { version, resolved: wanted['handle-resolver-proxy'], dependencies, bin };
  write('package.json', { name: 'user', private: true, type: 'module', dependencies: wanted });
  write('package-lock.json', {
    name: 'user',
    lockfileVersion: 3,
    requires: true,
    packages: {
      '': { name: 'user', dependencies: wanted },
      'node_modules/handle-resolver-proxy': itself,
      ...Object.fromEntries(lockedPackages),
    },
  });
  run('npm', ['ci', '--prefer-offline', '--no-audit', '--no-fund'], folder);
}

beforeAll(install);

/** Starts the program in a process group that can be signalled as by a terminal. */
function start(command: string, args: string[], env: Record<string, string>) {
  const program = follow(
    spawn(command, args, {
      cwd: folder,
      detached: true,
      env: { PATH: process.env['PATH'] ?? '', HOME: folder, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  );
  const stop = (): boolean => process.kill(-(program.child.pid ?? 0), 'SIGTERM');
  return { ...program, stop };
}

describe('npm package', () => {
  test('contains only the program and the operator documentation', () => {
    const paths = packed.files.map(({ path }) => path);
    const beside = paths.filter((path) => !path.startsWith('dist/'));
    expect(beside.filter((path) => !path.startsWith('config/')).sort()).toEqual(
      ['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'package.json'].sort(),
    );
    expect(beside).toEqual(
      expect.arrayContaining([
        'config/default.yaml',
        'config/troubleshooting.md',
        'config/examples/handle-resolver-proxy.service',
        'config/grafana/handle-resolver-proxy.json',
        'config/helm/values.yaml',
        'config/man/handle-resolver-proxy.1',
        'config/prometheus/alerts.yaml',
      ]),
    );
    expect(paths.filter((path) => /(?:^|\/)tests?\b|\.test\.|chaos|oxlint|(?<!\.d)\.ts$/.test(path))).toEqual(
      [],
    );
    const { exports } = jsonOf('package.json') as {
      exports: Record<string, string | { types: string; default: string }>;
    };
    const named = Object.values(exports).flatMap((entry) =>
      typeof entry === 'string' ? [entry] : Object.values(entry),
    );
    expect(named.filter((path) => !paths.includes(path.replace('./', '')))).toEqual([]);
  });

  test('lists its libraries with version, hash and licence in dist/sbom.json, equally in each build', () => {
    const inPackage = join(folder, 'node_modules/handle-resolver-proxy/dist/sbom.json');
    const text = readFileSync(inPackage, 'utf8');
    const { metadata, components, dependencies } = JSON.parse(text) as Sbom;
    const { name, version } = jsonOf('package.json') as Package;
    expect(metadata.component).toMatchObject({ type: 'application', name, version });
    const locked = lockedPackages.map(
      ([path, library]) => `${path.replace(/^.*node_modules\//, '')}@${library.version}`,
    );
    const listed = components.map((component) => component['bom-ref']);
    expect(listed.sort()).toEqual(locked.sort());
    expect(components.filter(({ hashes, licenses }) => !hashes?.length || !licenses?.length)).toEqual([]);
    expect(
      dependencies.flatMap(({ dependsOn }) => dependsOn).filter((each) => !listed.includes(each)),
    ).toEqual([]);
    const licences = readFileSync(join(ROOT, 'dist/licenses.txt'), 'utf8');
    const bundled = [...licences.matchAll(/^(\S+) (\d\S*) \(.*\)$/gm)].map(
      ([, library, at]) => `${library}@${at}`,
    );
    expect(bundled.length).toBeGreaterThan(50);
    expect(bundled.filter((each) => !listed.includes(each))).toEqual([]);
    expect(text).not.toMatch(/"(timestamp|serialNumber)"/);
  });

  test('serves with npx from the folder of its installation, and resolves a handle', async () => {
    const ports = { HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0' };
    const env = { ...ports, UPSTREAM_URL: demo.url, LOG_LEVEL: 'info' };
    const npx = ['--offline', 'handle-resolver-proxy'];
    const serving = start('npx', [...npx, 'serve'], env);
    await expect.poll(serving.stdout).toContain('"msg":"listening"');
    const { url, admin } = JSON.parse(/^.*"msg":"listening".*$/m.exec(serving.stdout())?.[0] ?? '') as {
      url: string;
      admin: string;
    };
    const resolving = start('npx', [...npx, 'resolve', '21.T11998/demo', '--plain'], {
      PROXY_URL: url,
      ADMIN_URL: admin,
    });
    expect(await resolving.exited).toMatchObject({ code: 0 });
    expect(resolving.stdout()).toContain('1\tURL\t86400\thttps://example.org/demo\n');
    for (const [base, path] of [
      [url, '/openapi'],
      [admin, '/'],
    ] as const) {
      expect((await ask(base, path)).status).toBe(200);
    }
    serving.stop();
    await serving.exited;
  });

  describe('in the embedding example of config/embedding.md', () => {
    const document = readFileSync(join(ROOT, 'config/embedding.md'), 'utf8');
    const [, program = ''] = /^```ts\n([^]*?)^```/m.exec(document) ?? [];

    test('has types that compile the example and reject wrong calls', () => {
      expect(program).toContain('createApp');
      write('embed.ts', program);
      write(
        'wrong.ts',
        `${program}
// @ts-expect-error -- no configuration
createApp({ logger, metrics: createMetrics() });
// @ts-expect-error -- a number
export const host: string = config.server.port;
`,
      );
      const compilerOptions = { strict: true, skipLibCheck: false, lib: ['ES2023'], module: 'NodeNext' };
      const typesOfNode = { types: ['node'], typeRoots: [join(ROOT, 'node_modules/@types')] };
      write('tsconfig.json', {
        compilerOptions: { ...compilerOptions, ...typesOfNode },
        files: ['embed.ts', 'wrong.ts'],
      });
      run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '--project', folder], folder);
    });

    test('runs and responds', async () => {
      const port = await freePort();
      const env = { UPSTREAM_URL: demo.url, HOST: '127.0.0.1', PORT: String(port) };
      const embedding = start(process.execPath, ['embed.js'], env);
      const status = async (): Promise<number> =>
        (await ask(`http://127.0.0.1:${port}`, '/api/handles/21.T11998/demo').catch(() => ({ status: 0 })))
          .status;
      await expect.poll(status).toBe(200);
      embedding.stop();
      expect(await embedding.exited).toMatchObject({ code: 0 });
    });
  });
});
