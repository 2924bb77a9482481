// Web servers in front of the proxy, configured as in config/examples, forward the longest headers that the proxy accepts and sends.
import '../support/real-sockets.js';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { type ControlledServer, createControlledServer } from '../support/demo-control.js';
import { FRONT_NAMES, NAME } from '../support/front-configs.js';
import { value } from '../support/leads.js';
import { itWithProgram } from '../support/programs.js';
import { type Proxy, openProxy } from '../support/proxy.js';
import { startFront } from '../support/tls-front.js';
import { USER01 } from '../support/v2.js';

const LONGEST = 8000;
const ITEM = '21.T11148/b8457812905b83046284';

const filled = (start: string, length: number): string => start + 'x'.repeat(length - start.length);

const longUrl = value(1, 'URL', filled('https://example.org/', LONGEST));
// FAIR Signposting adds three links, and a header with more than 60 has no others.
const locations = Array.from(
  { length: 57 },
  (_, at) => `<location rel="item" href="${filled(`https://a.example.org/${at}/`, 120)}"/>`,
);
const links = value(2, '10320/links', `<links>${locations.join('')}</links>`);
const note = value(3, '10320/headers', `X-Note: ${filled('', LONGEST - 'X-Note: '.length)}`);
const records = {
  'long-location': [longUrl],
  'long-link': [longUrl, links],
  'long-note': [longUrl, note],
  'long-items': [
    value(1, 'URL', filled('https://example.org/', 1900)),
    note,
    ...['a', 'b', 'c'].map((host, at) => value(4 + at, ITEM, filled(`https://${host}.example.org/`, 1900))),
  ],
};
/** Characters of the header, in thousands. */
const kilo = (header: string | string[] = ''): number => Math.round(header.toString().length / 1000);

let demo: ControlledServer;
let proxy: Proxy;
beforeAll(async () => {
  demo = createControlledServer();
  for (const [name, values] of Object.entries(records)) demo.put(`21.T11998/${name}`, values);
  const { url } = await demo.listen(0);
  proxy = await openProxy({
    UPSTREAM_URL: url,
    HTTP_TRUSTED_PROXIES: 'loopback',
    REDIRECT_ALLOWED_HEADERS: 'Link,X-Note',
    SIGNPOSTING_PUBLIC_URL: `https://${NAME}`,
  });
});
afterAll(async () => {
  await proxy.close();
  await demo.close();
});

describe.each(FRONT_NAMES)('%s in front of the proxy', (name) => {
  const front = () => startFront(name, new URL(proxy.url).host);

  itWithProgram(name, 'forwards the longest headers of redirects', async () => {
    const { ask } = await front();
    const lengths: Record<string, number[]> = {};
    // The second response is prepared.
    for (const headers of [{}, { Origin: 'https://app.example.org' }, {}]) {
      for (const record of Object.keys(records)) {
        const answer = await ask(`/21.T11998/${record}`, { headers });
        expect([record, answer.status]).toEqual([record, 302]);
        lengths[record] = ['location', 'link', 'x-note'].map((header) => kilo(answer.headers[header]));
      }
    }
    expect(lengths).toEqual({
      'long-location': [8, 0, 0],
      'long-link': [8, 8, 0],
      'long-note': [8, 0, 8],
      'long-items': [2, 8, 8],
    });
  });

  itWithProgram(name, 'forwards the longest handles in paths and in Location', async () => {
    const { ask } = await front();
    // 1,000 bytes, and the 2,048 of the longest handle; each byte takes three characters.
    for (const bytes of [1000, 2048]) {
      const suffix = '漢'.repeat(Math.floor((bytes - '21.T11998/'.length) / 3));
      const path = `/21.T11998/${encodeURIComponent(suffix)}`;
      const answer = await ask(`/api/v2/handles${path}`, {
        method: 'PUT',
        headers: { Authorization: USER01, 'Content-Type': 'application/json' },
        body: JSON.stringify([{ type: 'URL', parsed_data: 'https://example.org/' }]),
      });
      expect([200, 201, 204], answer.text).toContain(answer.status);
      if (answer.status === 201)
        expect(answer.headers.location).toBe(`https://${NAME}/api/v2/handles${path}`);
      expect((await ask(path)).headers.location).toBe('https://example.org/');
      const { text } = await ask(`/api/handles${path}`);
      expect(JSON.parse(text)).toMatchObject({ responseCode: 1, handle: `21.T11998/${suffix}` });
      await ask(`/api/v2/handles${path}`, { method: 'DELETE', headers: { Authorization: USER01 } });
    }
  });
});
