// `resolve` on a terminal and in a pipe.
import { describe, expect, test } from 'vitest';
import { textValue } from '../../src/dev-server/seed.js';
import { cli } from '../support/cli.js';
import { startDemoServer } from '../support/demo.js';
import { startOperated } from '../support/operated-proxy.js';
import { itWithProgram } from '../support/programs.js';
import { startOnTerminal } from '../support/terminal.js';
import { freePort } from '../support/free-port.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/demo';

const place = async (): Promise<Record<string, string>> => (await startOperated(demo.url)).place;

const onTerminal = async (args: string[], env: Record<string, string>) => {
  const { exited, screen } = startOnTerminal(args, env);
  const { code } = await exited;
  return { code, lines: screen().split('\r\n') };
};

describe('resolve command', () => {
  itWithProgram('script', 'prints a table and the cache entries on a terminal', async () => {
    const { code, lines } = await onTerminal(['resolve', HANDLE], await place());
    expect(code).toBe(0);
    expect(lines.slice(0, 7)).toEqual([
      HANDLE,
      'index  type          ttl  data',
      '    1  URL         86400  https://example.org/demo',
      '    2  EMAIL       86400  curator@example.org',
      '    3  DESC        86400  A data set with several values',
      '    4  URL.MIRROR  86400  https://mirror.example.org/demo',
      '  100  HS_ADMIN    86400  {"handle":"0.NA/21.T11998","index":200,"permissions":"011111110011"}',
    ]);
    expect(lines[7]).toMatch(/^200 · handle-resolver-proxy; fwd=miss; ttl=3\d+; stored$/);
    expect(lines[8]).toMatch(
      /^memory +found, fresh, age 0 s, TTL left 3\d+ s \(stale-if-error \d+ s\), 0 hits/,
    );
  });

  itWithProgram('script', 'escapes control characters in handles and values', async () => {
    const handle = '21.T11998/a\u001b[2Jb';
    demo.put(handle, [textValue(1, 'DESC', 'c\u202ed')]);
    const env = await place();
    for (const form of [[], ['--json'], ['--plain']]) {
      const { lines } = await onTerminal(['resolve', handle, ...form], env);
      expect(lines.join('')).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/);
      expect(lines.join('')).toContain(String.raw`c\u202ed`);
    }
  });

  test('prints the body unchanged in a pipe, or one line per value with --plain', async () => {
    const env = await place();
    const json = await cli(['resolve', HANDLE], env);
    expect(JSON.parse(json.stdout)).toMatchObject({ responseCode: 1, handle: HANDLE });
    const { stdout } = await cli(['resolve', HANDLE, '--plain'], env);
    expect(stdout.split('\n').slice(0, 2)).toEqual([
      '1\tURL\t86400\thttps://example.org/demo',
      '2\tEMAIL\t86400\tcurator@example.org',
    ]);
  });

  test('prints a 404 response and exits with 1', async () => {
    const { code, stdout, stderr } = await cli(['resolve', '21.T11998/nobody'], await place());
    expect([code, stdout]).toEqual([1, expect.stringContaining('"responseCode":100')]);
    expect(stderr).toMatch(/404 · .*\n.*not-found, fresh.*\nstatus 404\n/);
  });

  test('queries only the Handle server with --direct, and bypasses the cache', async () => {
    const { code, stdout, stderr } = await cli(['resolve', HANDLE, '--direct', `${demo.url}/`]);
    expect([code, stderr]).toEqual([0, '200 · no Cache-Status\n']);
    expect(stdout).toContain('"responseCode":1');
  });

  test('works when the admin listener is unreachable', async () => {
    const { PROXY_URL = '' } = await place();
    const { code, stderr } = await cli(['resolve', HANDLE], { PROXY_URL, ADMIN_URL: 'http://127.0.0.1:1' });
    expect([code, stderr]).toEqual([0, expect.stringContaining('cache entries unknown')]);
  });

  test('reports an unreachable proxy and the reason', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const { code, stderr } = await cli(['resolve', HANDLE], { PROXY_URL: url });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^cannot reach .*: connect ECONNREFUSED/)]);
  });

  test.each([
    'hdl:21.T11998/demo',
    'https://hdl.handle.net/21.T11998/demo',
    'https://doi.org/21.T11998%2Fdemo?noredirect',
    'http://dx.doi.org/21.T11998/demo#section',
    'https://hdl.handle.net/api/handles/21.T11998/demo?type=URL',
  ])('accepts a handle as %s', async (given) => {
    const { code, stdout } = await cli(['resolve', given], await place());
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ handle: HANDLE });
  });

  test('decodes a URL once, and never decodes a bare handle', async () => {
    const handle = '21.T11998/ä%20 ?#b';
    demo.put(handle, [textValue(1, 'DESC', 'odd')]);
    const env = await place();
    const inUrl = `https://hdl.handle.net/21.T11998/ä${encodeURIComponent('%20 ?#b')}`;
    for (const given of [handle, `hdl:${handle}`, inUrl]) {
      expect(JSON.parse((await cli(['resolve', given], env)).stdout)).toMatchObject({ handle });
    }
  });
});
