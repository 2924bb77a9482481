import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { exchange } from '../support/raw-socket.js';
import { askV2 } from '../support/v2.js';
import { URL_INPUT } from '../support/v2-record.js';
import { NAME, type Scripted, scriptUpstream } from '../support/v2-upstream.js';

useNock();

const created: Scripted[] = [
  { status: 201, body: { responseCode: 1 } },
  { status: 404, body: { responseCode: 100 } },
];

async function locationOf(
  headers: Record<string, string>,
  env: Record<string, string> = {},
  path = `/${NAME}`,
) {
  scriptUpstream(...created);
  const { url } = await startProxy(env);
  const given = { 'If-None-Match': '*', ...headers };
  const { headers: got } = await askV2(url)(path, { method: 'PUT', body: [URL_INPUT], headers: given });
  return got.location?.replace(url, 'OWN');
}

const forwarded = {
  Host: 'inside:8080',
  'X-Forwarded-Proto': 'https',
  'X-Forwarded-Host': 'pid.example.org',
  'X-Forwarded-Prefix': '/epic/',
};

describe('ePIC v2 Location header', () => {
  test.each([
    ['pid.example.org', 'http://pid.example.org'],
    ['pid.example.org:8443', 'http://pid.example.org:8443'],
    ['[::1]:8080', 'http://[::1]:8080'],
  ])('is derived from Host %s: %s', async (host, base) => {
    expect(await locationOf({ Host: host })).toBe(`${base}/api/v2/handles/${NAME}`);
  });

  test.each([{}, { HTTP_TRUSTED_PROXIES: '10.0.0.0/8' }])(
    'ignores X-Forwarded headers from an untrusted proxy (%j)',
    async (env) => {
      expect(await locationOf(forwarded, env)).toBe(`http://inside:8080/api/v2/handles/${NAME}`);
    },
  );

  test.each(['loopback', '127.0.0.1', '10.0.0.0/8, 127.0.0.0/8'])(
    'uses X-Forwarded headers from the trusted proxy %s',
    async (proxies) => {
      const env = { HTTP_TRUSTED_PROXIES: proxies };
      expect(await locationOf(forwarded, env)).toBe(`https://pid.example.org/api/v2/handles/${NAME}`);
    },
  );

  test('uses Forwarded from a trusted proxy without X-Forwarded-For, and ignores X-Forwarded-Prefix', async () => {
    const env = { HTTP_TRUSTED_PROXIES: 'loopback' };
    const claim = 'for=192.0.2.7;proto=https;host="pid.example.org:8443", for=10.0.0.1;proto=http';
    const headers = { Host: 'inside:8080', 'X-Forwarded-Prefix': '/epic', Forwarded: claim };
    expect(await locationOf(headers, env)).toBe(`https://pid.example.org:8443/api/v2/handles/${NAME}`);
  });

  test('uses the request if Forwarded names neither scheme nor host', async () => {
    const headers = { Host: 'inside:8080', Forwarded: 'for=192.0.2.7' };
    expect(await locationOf(headers, { HTTP_TRUSTED_PROXIES: 'loopback' })).toBe(
      `http://inside:8080/api/v2/handles/${NAME}`,
    );
  });

  test('uses v2.publicUrl when configured', async () => {
    const env = { V2_PUBLIC_URL: 'https://hdl.example.org/pids/', HTTP_TRUSTED_PROXIES: 'loopback' };
    expect(await locationOf(forwarded, env)).toBe(`https://hdl.example.org/pids/api/v2/handles/${NAME}`);
  });

  test("preserves the client's spelling of the request URL", async () => {
    expect(await locationOf({}, {}, '/21.t11998%2Fa%20b/c/?URL=x')).toBe(
      'OWN/api/v2/handles/21.t11998%2Fa%20b/c',
    );
  });

  test('needs no encoding, because a request URL with other than printable ASCII characters is refused', async () => {
    const { url } = await startProxy();
    for (const character of ['\t', '\x7f', '\x80', '\xe4', '\xff']) {
      const head = `PUT /api/v2/handles/21.T11998/a${character} HTTP/1.1\r\nHost: own\r\n\r\n`;
      const { answers } = await exchange(url, Buffer.from(head, 'latin1'));
      expect(answers.map(({ status }) => status)).toEqual([400]);
    }
  });
});
