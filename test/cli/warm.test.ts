// `warm`: from a list or a prefix, on a terminal or in a pipe, interrupted and resumed.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { DEMO_PASSWORD, DEMO_PREFIX, demoRecords, textValue } from '../../src/dev-server/seed.js';
import { ask } from '../support/ask.js';
import { startBuiltProxy, startProgram } from '../support/built-proxy.js';
import { cli } from '../support/cli.js';
import { startDemoServer } from '../support/demo.js';
import { fixed } from '../support/fixed.js';
import { startHttpServer } from '../support/http-server.js';
import { type Operated, startOperated } from '../support/operated-proxy.js';
import { itWithProgram } from '../support/programs.js';
import { CTRL_C, startOnTerminal } from '../support/terminal.js';

const demo = await startDemoServer();

function file(name: string, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'proxy-warm-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** Returns a file with `count` existing handles. */
function listOf(count: number, name: string): string {
  const handles = Array.from({ length: count }, (_, at) => `21.T11998/${name}-${at}`);
  for (const handle of handles) demo.put(handle, [textValue(1, 'URL', 'https://example.org/warm')]);
  onTestFinished(() => {
    for (const handle of handles) demo.remove(handle);
  });
  return file('handles', `${handles.join('\n')}\n`);
}

const answeredBy = async ({ place }: Operated): Promise<unknown> =>
  (JSON.parse((await ask(place.ADMIN_URL, '/stats')).text) as { requests: { total: number } }).requests.total;

// On a slow machine the handles wait longer for each other than by default.
const start = (): Promise<Operated> =>
  startOperated(demo.url, { ...fixed({ upstream: { queueTimeoutMs: 20_000 } }), UPSTREAM_TIMEOUT: '20s' });

/** Starts a server without pages, whose list is as long as a page. Returns the requested paths. */
async function startWithoutPages(cacheStatus: string) {
  const asked: string[] = [];
  const PROXY_URL = await startHttpServer(({ url = '' }, res) => {
    asked.push(url);
    res.setHeader('Cache-Status', cacheStatus);
    res.end(JSON.stringify({ responseCode: 1, totalCount: 2, handles: ['21.T1/A', '21.T1/B'] }));
  });
  return { asked, PROXY_URL };
}

describe('warm command at another server', () => {
  test('ends at a page that lists nothing new', async () => {
    const { asked, PROXY_URL } = await startWithoutPages('');
    const { code, stdout } = await cli(['warm', '--prefix', '21.T1', '--page-size', '2'], { PROXY_URL });
    expect([code, stdout]).toEqual([0, '2 warmed, 0 not found, 0 failed, 0 not due; 0 left\n']);
    expect(asked.filter((path) => path.includes('page='))).toHaveLength(2);
  });

  test('requests a handle again whose TTL is no time', async () => {
    const { PROXY_URL } = await startWithoutPages(`handle-resolver-proxy; hit; ttl=${'9'.repeat(20)}`);
    const args = ['warm', file('handles', '21.T1/A\n'), '--state', file('done', '')];
    for (let times = 0; times < 2; times++)
      expect((await cli(args, { PROXY_URL })).stdout).toContain('1 warmed');
  });
});

describe('warm command', () => {
  test('skips empty lines and comments', async () => {
    const proxy = await start();
    const list = file(
      'handles',
      `# records of the demo\n\n21.T11998/page\n# ${'another'.repeat(9)} comment\n`,
    );
    const { code, stdout } = await cli(['warm', list], { PROXY_URL: proxy.url });
    expect([code, stdout]).toEqual([0, '1 warmed, 0 not found, 0 failed, 0 not due; 0 left\n']);
  });

  itWithProgram('script', 'resumes after Ctrl-C without requesting a handle twice', async () => {
    const proxy = await start();
    const list = listOf(180, 'broken-off');
    const args = ['warm', list, '--state', `${list}.done`, '--rate', '10', '--concurrency', '1'];
    const env = { PROXY_URL: proxy.url };
    const { screen, exited, press } = startOnTerminal(args, env);
    await expect.poll(screen, { timeout: 60_000 }).toMatch(/[1-9]\d* of 180 handles, \d+\/s, \d+ s left/);
    press(CTRL_C);
    expect(await exited).toMatchObject({ code: 1 });
    expect(screen()).toContain('interrupted; run the same command to resume');
    const [, warmed = '', left = ''] =
      /(\d+) warmed, 0 not found, 0 failed, 0 not due; (\d+) left/.exec(screen()) ?? [];
    const done = Number(warmed);
    expect(Number(left)).toBe(180 - done);
    expect(done).toBeGreaterThan(0);
    expect(done).toBeLessThan(180);
    expect(readFileSync(`${list}.done`, 'utf8').trimEnd().split('\n')).toHaveLength(done);

    const resumed = await cli(['warm', list, '--state', `${list}.done`, '--rate', '1000'], env);
    expect(resumed).toMatchObject({
      code: 0,
      stdout: `${180 - done} warmed, 0 not found, 0 failed, ${done} not due; 0 left\n`,
    });
    // A slow machine may need longer for the request in flight than `warm` waits after Ctrl-C.
    expect([180, 181]).toContain(await answeredBy(proxy));
  });

  test('prints progress lines with rate and remaining time', async () => {
    const proxy = await start();
    const { code, stderr } = await cli(['warm', listOf(30, 'plain'), '--rate', '10'], {
      PROXY_URL: proxy.url,
    });
    expect(code).toBe(0);
    // The remaining time is unknown before the first response.
    expect(stderr).toMatch(/^(?:0 of 30 handles, 0\/s\n)*(?:\d+ of 30 handles, \d+\/s, \d+ s left\n)+$/);
  });

  test('stops on SIGTERM in a pipe, after saving the finished handles in the state file', async () => {
    const { place } = await start();
    const list = listOf(120, 'signalled');
    const args = ['dist/main.js', 'warm', list, '--state', `${list}.done`, '--rate', '10'];
    const { child, exited, stdout, stderr } = startProgram(args, place);
    await expect
      .poll(() => existsSync(`${list}.done`) && readFileSync(`${list}.done`, 'utf8'))
      .toContain('\n');
    child.kill('SIGTERM');
    expect(await exited).toMatchObject({ code: 1 });
    expect(stderr()).toContain('interrupted');
    const remembered = readFileSync(`${list}.done`, 'utf8').trimEnd().split('\n').length;
    expect(stdout()).toMatch(new RegExp(`^${remembered} warmed, `));
  });

  test('requests only the remaining handles after kill -9', async () => {
    const proxy = await start();
    const list = listOf(120, 'killed');
    const args = ['dist/main.js', 'warm', list, '--state', `${list}.done`, '--rate', '10'];
    const { child, exited } = startProgram(args, proxy.place);
    await expect
      .poll(() => existsSync(`${list}.done`) && readFileSync(`${list}.done`, 'utf8'))
      .toContain('\n');
    child.kill('SIGKILL');
    await exited;
    const known = readFileSync(`${list}.done`, 'utf8').split('\n').length - 1;
    expect(known).toBeGreaterThan(0);
    const { code, stdout } = await cli(['warm', list, '--state', `${list}.done`], { PROXY_URL: proxy.url });
    expect([code, stdout]).toEqual([
      0,
      `${120 - known} warmed, 0 not found, 0 failed, ${known} not due; 0 left\n`,
    ]);
  });

  test('prints failures, and retries failed handles in the next run', async () => {
    const proxy = await start();
    const list = listOf(12, 'failing');
    const args = ['warm', list, '--state', `${list}.done`];
    await proxy.close();
    const failed = await cli(args, { PROXY_URL: proxy.url });
    expect(failed).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('0 warmed, 0 not found, 12 failed, 0 not due; 12 left') as string,
    });
    expect(failed.stderr).toMatch(
      /^(?:\d+ of 12 handles, .*\n)*(?:21\.T11998\/failing-\d+: connect ECONNREFUSED .*\n){10}12 handles failed\n$/,
    );
    const again = await cli(args, { PROXY_URL: (await start()).url });
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('12 warmed') as string });
  });

  const LOGIN = { HANDLE_USER: `300:${DEMO_PREFIX}/USER01`, HANDLE_PASSWORD: DEMO_PASSWORD };
  const COUNT = Object.keys(demoRecords(0)).filter((handle) => handle.startsWith(DEMO_PREFIX)).length;

  test.each([4, COUNT, 10_000])(
    'lists a prefix through the proxy in pages of %i, and warms its handles',
    async (pageSize) => {
      const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url });
      const args = ['warm', '--prefix', DEMO_PREFIX, '--page-size', String(pageSize)];
      const { code, stdout, stderr } = await cli(args, { PROXY_URL: proxy.url, ...LOGIN });
      expect([code, stdout]).toEqual([0, `${COUNT} warmed, 0 not found, 0 failed, 0 not due; 0 left\n`]);
      expect(stderr).toContain(`${COUNT} of ${COUNT} handles listed\n`);
      expect(stdout + stderr + proxy.output()).not.toContain(DEMO_PASSWORD);
      expect((await ask(proxy.url, '/api/handles/21.T11998/page')).headers['cache-status']).toContain(
        '; hit',
      );
    },
  );

  test("refreshes only the handles under a prefix that are due by the proxy's TTL", async () => {
    const proxy = await startOperated(demo.url);
    const env = { PROXY_URL: proxy.url, ...LOGIN };
    const state = file('prefix.done', '');
    const args = ['warm', '--prefix', DEMO_PREFIX, '--state', state];
    expect((await cli(args, env)).stdout).toContain(`${COUNT} warmed, 0 not found, 0 failed, 0 not due`);
    const lines = readFileSync(state, 'utf8').trimEnd().split('\n');
    const times = lines.map((line) => Date.parse(line.split('\t')[1] ?? ''));
    expect(Math.max(...times)).toBeGreaterThan(Date.now() + 3_000_000);
    // One record is always due because of its short TTL.
    const timed = lines.map((line, at) =>
      line.replace(/\t.*/, `\t${at < 3 ? 2026 : 2126}-01-01T00:00:00.000Z`),
    );
    writeFileSync(state, `${timed.join('\n')}\n`);
    expect((await cli(args, env)).stdout).toContain(`3 warmed, 0 not found, 0 failed, ${COUNT - 3} not due`);
    expect(readFileSync(state, 'utf8').trimEnd().split('\n')).toHaveLength(COUNT + 3);
  });

  test('reads the user from an option and the password from a file', async () => {
    const env = { PROXY_URL: (await start()).url };
    const secret = file('password', `${DEMO_PASSWORD}\n`);
    const login = ['--user', LOGIN.HANDLE_USER, '--password-file', secret];
    expect((await cli(['warm', '--prefix', DEMO_PREFIX, ...login], env)).code).toBe(0);
    const encoded = ['--user', '300%3A21.T11998%2FUSER01', '--password-file', secret];
    expect((await cli(['warm', '--prefix', DEMO_PREFIX, ...encoded], env)).code).toBe(0);
  });

  test.each<[reason: string, env: Record<string, string>, code: number, text: string]>([
    ['no user is given', {}, 2, '; give --user'],
    [
      'the password is wrong',
      { ...LOGIN, HANDLE_PASSWORD: 'hush-wrong' },
      1,
      '401; the Handle server does not accept',
    ],
    [
      'the user lacks the right',
      { HANDLE_USER: '300:21.T11998/USER02', HANDLE_PASSWORD: 'secret2' },
      1,
      '403',
    ],
    ['no password is given', { HANDLE_USER: LOGIN.HANDLE_USER }, 2, 'Give the password'],
    ['the connection is not encrypted', { ...LOGIN, PROXY_URL: 'http://handle.test' }, 2, 'in the clear'],
  ])('refuses to list a prefix, with a hint, when %s', async (_reason, env, code, text) => {
    const place = { PROXY_URL: (await start()).url };
    const { stderr, ...ended } = await cli(['warm', '--prefix', DEMO_PREFIX], { ...place, ...env });
    expect(ended).toEqual({ code, stdout: '' });
    expect(stderr).toContain(text);
    expect(stderr).not.toMatch(/hush|secret2/);
  });

  test('accepts handles as URIs and resolver URLs', async () => {
    const proxy = await start();
    const names = [
      '21.T11998/page',
      'hdl:21.T11998/page',
      'https://hdl.handle.net/21.T11998/demo',
      'doi:21.T11998/empty',
    ];
    const { code, stdout } = await cli(['warm', file('forms', `${names.join('\n')}\n`)], {
      PROXY_URL: proxy.url,
    });
    expect([code, stdout]).toEqual([0, '3 warmed, 0 not found, 0 failed, 0 not due; 0 left\n']);
  });

  test.each([
    ['binary data', '21.T11998/page\n\u0000\u0001\n', /line 2 is not a handle/],
    ['a different format', '{"done":[]}', /line 1 is not a handle/],
    ['an invalid time', '21.T11998/page\tsoon\n', /line 1 is not a handle/],
    ['an empty line', '21.T11998/page\n\n21.T11998/demo\n', /line 2 is not a handle/],
  ])('rejects a state file with %s before any request', async (_what, text, reason) => {
    const proxy = await start();
    const state = file('state', text);
    const { code, stderr } = await cli(['warm', listOf(3, 'untouched'), '--state', state], {
      PROXY_URL: proxy.url,
    });
    expect([code, stderr]).toEqual([2, expect.stringMatching(reason)]);
    expect(stderr).toContain(state);
    expect(readFileSync(state, 'utf8')).toBe(text);
    expect(await answeredBy(proxy)).toBe(0);
  });

  test('rejects an unwritable state file before any request', async () => {
    const { code, stderr } = await cli(['warm', listOf(3, 'unwritable'), '--state', '/nowhere/state']);
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/cannot use the state file: .*\/nowhere\/state/),
    ]);
  });

  test('requests a handle again when its line, the last of the state file, is truncated', async () => {
    const { url } = await start();
    const list = file('cut', '21.T11998/demo\n21.T11998/page\n');
    const known = '21.T11998/demo\t2126-01-01T00:00:00.000Z\n';
    const state = file('cut.done', `${known}21.T11998/page\t2126-01-0`);
    const { code, stdout, stderr } = await cli(['warm', list, '--state', state], { PROXY_URL: url });
    expect([code, stdout]).toEqual([0, '1 warmed, 0 not found, 0 failed, 1 not due; 0 left\n']);
    expect(stderr).toContain('the last line is cut off');
    expect(readFileSync(state, 'utf8')).toMatch(new RegExp(`^${known}21.T11998/page\t20\\d\\d-\\S+Z\n$`));
  });

  test.each([
    ['a folder', 'src', 'EISDIR'],
    ['a missing file', '/nowhere', 'ENOENT'],
  ])('exits with 2 for %s as the list, and names it and the reason', async (_what, list, reason) => {
    for (const command of [['warm'], ['bench', '--file']]) {
      const { code, stderr } = await cli([...command, list]);
      expect(stderr).toMatch(new RegExp(`^cannot read ${list}: ${reason}.*\\n$`));
      expect(code).toBe(2);
    }
  });

  test('exits with 2 for both a list and a prefix, for neither, and for a concurrency of 0', async () => {
    expect((await cli(['warm'])).code).toBe(2);
    expect((await cli(['warm', 'package.json', '--prefix', '21.T1'])).code).toBe(2);
    expect((await cli(['warm', 'package.json', '--concurrency', '0'])).code).toBe(2);
  });
});
