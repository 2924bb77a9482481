// The `dev-server` command: an in-memory Handle server for tests of other programs.
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startProgram } from '../support/built-proxy.js';
import { builtCli } from '../support/cli.js';
import { basic } from '../support/demo.js';
import { freePort } from '../support/free-port.js';
import { askTcp, exchangeUdp } from '../support/native-client.js';
import { codeOf, indexesIn, nativeRequest, readResponse } from '../support/native-messages.js';
import '../support/real-sockets.js';

const VALUES = [{ index: 1, type: 'URL', data: { format: 'string', value: 'https://example.org/seeded' } }];
const LOGIN = { Authorization: basic('300:21.T11998/SERVERADMIN', 'serveradmin') };

function seedFile(...lines: unknown[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'dev-server-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const file = join(folder, 'records.ndjson');
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  return file;
}

async function start(...args: string[]) {
  const program = startProgram(['dist/main.js', 'dev-server', '--port', '0', ...args], {});
  const wanted = args.includes('--native-port') ? /Native protocol: / : /running at /;
  await expect.poll(() => program.stdout() + program.stderr()).toMatch(wanted);
  const [, url = ''] = /running at (\S+)/.exec(program.stdout()) ?? [];
  return { ...program, url };
}

describe('dev-server command', () => {
  it('serves seed and demo records, accepts writes, and stops on SIGTERM', async () => {
    const times = { requestedAt: '2026-11-21T09:00:00Z' };
    const server = await start('--records', seedFile({ handle: '20.500.1/a', ...times, values: VALUES }));
    expect(server.stderr()).toContain('Not for production');
    for (const handle of ['20.500.1/a', '21.T11998/DEMO'])
      expect((await fetch(`${server.url}/api/handles/${handle}`)).status).toBe(200);
    const headers = { ...LOGIN, 'Content-Type': 'application/json' };
    const written = { method: 'PUT', headers, body: JSON.stringify(VALUES) };
    expect((await fetch(`${server.url}/api/handles/20.500.1/b`, written)).status).toBe(201);
    const session = await fetch(`${server.url}/api/sessions`, { method: 'POST', headers: LOGIN });
    expect(await session.json()).toMatchObject({ authenticated: true });
    server.child.kill('SIGTERM');
    expect(await server.exited).toEqual({ code: 0, signal: null });
  });

  it('resolves over native TCP and UDP, and caches nothing', async () => {
    const port = await freePort();
    const server = await start('--native-port', String(port));
    const handle = '21.T11998/native';
    expect(codeOf(await askTcp(port, handle))).toBe(100);
    const headers = { ...LOGIN, 'Content-Type': 'application/json' };
    await fetch(`${server.url}/api/handles/${handle}`, {
      method: 'PUT',
      headers,
      body: JSON.stringify(VALUES),
    });
    expect(indexesIn(await askTcp(port, handle))).toEqual([1]);
    const packets = await exchangeUdp(port, [nativeRequest(handle)]);
    expect(indexesIn(readResponse(Buffer.concat(packets)))).toEqual([1]);
    server.child.kill('SIGTERM');
    expect(await server.exited).toEqual({ code: 0, signal: null });
  });

  it.each<[what: string, line: unknown]>([
    ['without values', { handle: '20.500.1/a' }],
    ['that is not an object', ['20.500.1/a']],
    ['with an invalid value', { handle: '20.500.1/a', values: [{ index: 'x' }] }],
  ])('exits with 1 and reports the line number for a line %s', async (_what, line) => {
    const file = seedFile({ handle: '20.500.1/a', values: VALUES }, line);
    const { code, stderr } = await builtCli(['dev-server', '--port', '0', '--records', file]);
    expect([code, stderr.trim()]).toEqual([1, `line 2 of ${file} is not a record`]);
  });

  it('exits with 2 for a port in use or an invalid port', async () => {
    const { url } = await start();
    const [port = ''] = /\d+$/.exec(url) ?? [];
    expect(await builtCli(['dev-server', '--port', port])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/EADDRINUSE.*; choose another --port or --host$/m) as string,
    });
    expect((await builtCli(['dev-server', '--port', '65536'])).code).toBe(2);
  });
});

/** Returns the chunks that a file in dist imports statically. */
function chunksOf(file: string, found = new Set<string>()): Set<string> {
  if (found.has(file)) return found;
  found.add(file);
  const text = readFileSync(join('dist', file), 'utf8');
  for (const [, name = ''] of text.matchAll(/^(?:import|export)\b[^;]*?["']\.\/([\w.-]+\.js)["']/gm))
    chunksOf(name, found);
  return found;
}

/** Returns the sources of a chunk; none for a chunk that only re-exports other chunks. */
function sourcesOf(chunk: string): string[] {
  const map = join('dist', `${chunk}.map`);
  return existsSync(map) ? (JSON.parse(readFileSync(map, 'utf8')) as { sources: string[] }).sources : [];
}

describe('built proxy', () => {
  it('does not load the dev-server module', () => {
    const chunks = readdirSync('dist').filter((name) => name.endsWith('.js'));
    const chunkWith = (source: string): string =>
      chunks.find((name) => sourcesOf(name).some((path) => path.endsWith(source))) ?? '';
    const loaded = ['src/cli/main.ts', 'src/app/run.ts']
      .flatMap((source) => [...chunksOf(chunkWith(source))])
      .flatMap(sourcesOf);
    expect(loaded.some((path) => path.endsWith('src/app/app.ts'))).toBe(true);
    expect(loaded.filter((path) => path.includes('src/dev-server/'))).toEqual([]);
    const all = chunks.flatMap(sourcesOf);
    expect(all.some((path) => path.endsWith('src/dev-server/server.ts'))).toBe(true);
  });
});
