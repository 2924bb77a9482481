// The length of an answer about a record, compared with the record: no record makes the answer much longer.
import '../support/real-sockets.js';
import request from 'supertest';
import { afterAll, describe, expect, test } from 'vitest';
import { DEMO_PREFIX } from '../../src/dev-server/seed.js';
import { listenHttp } from '../live/upstream-loopback.js';
import { type Proxy, startProxy } from '../support/proxy.js';

const HANDLE = `${DEMO_PREFIX}/GROWTH`;
const COUNT = 1000;
const TEXT_CHARS = 100_000;

interface Value {
  type: string;
  data: object;
}

const text = (value: string): Value => ({ type: 'URL', data: { format: 'string', value } });
const bytes = (type: string, data: Buffer): Value => ({
  type,
  data: { format: 'base64', value: data.toString('base64') },
});
const int32 = (number: number): Buffer => {
  const buffer = Buffer.alloc(4);
  buffer.writeInt32BE(number);
  return buffer;
};
const sized = (data: Buffer): Buffer => Buffer.concat([int32(data.length), data]);
const members = (count: number, handle: string, index: number): Buffer =>
  Buffer.concat([
    int32(count),
    ...Array.from({ length: count }, () => Buffer.concat([sized(Buffer.from(handle)), int32(index)])),
  ]);
const headers = (value: string): Value => ({ type: '10320/headers', data: { format: 'string', value } });
/** Returns different names of three characters, each after `before`. */
const namesAfter = (count: number, before: string): string =>
  Array.from({ length: count }, (_, at) => `${before}${(at + 36 ** 2).toString(36)}`).join('');
const many = (value: Value): Value[] => Array<Value>(COUNT).fill(value);

/** Records whose answers are as long as possible. */
const RECORDS: Record<string, Value[]> = {
  'short values': many({ type: 'A', data: { format: 'string', value: '' } }),
  'short URLs': many(text('a:')),
  'administrators in base64': many(bytes('HS_ADMIN', Buffer.alloc(10))),
  'members of a list in base64': [bytes('HS_VLIST', members(10_000, '', -(2 ** 31)))],
  'a member of control characters': [bytes('HS_VLIST', members(1, '\u0001'.repeat(TEXT_CHARS), 1))],
  'a URL of characters that HTML escapes': [text('"'.repeat(TEXT_CHARS))],
  'a URL of ampersands': [text(`http://x/${'&'.repeat(TEXT_CHARS)}`)],
  'a URL of spaces': [text(`http://x/${' '.repeat(TEXT_CHARS)}x`)],
  'a URL of line feeds': [text('\n'.repeat(TEXT_CHARS))],
  'locations of templates': [
    {
      type: '10320/loc',
      data: {
        format: 'string',
        value: `<locations>${`<location href_template="{hdl}"/>`.repeat(3000)}</locations>`,
      },
    },
  ],
  'a link of relations and parameters': [
    text('https://example.org/'),
    headers(`Link: <>;rel="${'a '.repeat(500)}${namesAfter(500, ' ')}"${namesAfter(800, ';')}`),
  ],
  'links with a long target': [
    text(`https://example.org/${'x'.repeat(7000)}`),
    headers(`Link: ${'<>;rel=a,'.repeat(800)}`),
  ],
  'a URL of Chinese characters': [text(`http://x/${'\u4e2d'.repeat(TEXT_CHARS)}`)],
};

/** Answers with a separate part: a page shows 200 values, with a layout, and the list of URLs is cut at 1 MiB. */
const OWN_BYTES: Record<string, number> = {
  'the page': 384 * 1024,
  'the linkset': 384 * 1024,
  'the linkset as text': 384 * 1024,
};

/**
 * ePIC v2 shows a byte of HS_VLIST data, for which base64 needs 1.33 characters, as `\\u0001` and in base64: 5.5
 * times as long; the shortest HS_ADMIN value becomes 4.4 times as long. XML needs five characters for `&`.
 */
const MAX_GROWTH = 6;

const ANSWERS: Record<string, (proxy: Proxy) => Promise<string>> = {
  'the record': async ({ ask }) => (await ask(`/api/handles/${HANDLE}`)).text,
  'the indented record': async ({ ask }) => (await ask(`/api/handles/${HANDLE}?pretty`)).text,
  'ePIC v2': async ({ ask }) => (await ask(`/api/v2/handles/${HANDLE}`)).text,
  'the list of URLs': async ({ ask }) => (await ask(`/${HANDLE}?action=showurls`)).text,
  'the page': async ({ ask }) =>
    (await ask(`/${HANDLE}?noredirect`, { headers: { Accept: 'text/html' } })).text,
  'the linkset': async ({ ask }) => (await ask(`/${HANDLE}?action=linkset&format=json`)).text,
  'the linkset as text': async ({ ask }) => (await ask(`/${HANDLE}?action=linkset&format=text`)).text,
  'the export': async ({ app, ask }) => {
    await ask(`/api/handles/${HANDLE}`);
    return (await request(app.admin).get(`/export?prefix=${DEMO_PREFIX}`).expect(200)).text;
  },
};

const growths: { growth: number; what: string }[] = [];
afterAll(() => {
  const greatest = growths.sort((one, other) => other.growth - one.growth).slice(0, 5);
  for (const { growth, what } of greatest) process.stdout.write(`${growth.toFixed(2)} times: ${what}\n`);
});

describe.each(Object.entries(RECORDS))('a record of %s', (what, values) => {
  const body = JSON.stringify({
    responseCode: 1,
    handle: HANDLE,
    values: values.map((value, at) => ({ index: at + 1, ...value, ttl: 1 })),
  });

  test.each(Object.entries(ANSWERS))('%s', async (name, answer) => {
    const upstream = await listenHttp((_req, res) => res.end(body));
    const proxy = await startProxy({
      UPSTREAM_URL: upstream.url,
      SIGNPOSTING_PUBLIC_URL: 'https://pid.example.org',
      V2_ANONYMOUS_READ: 'true',
      V2_PREFIXES: DEMO_PREFIX,
    });
    const sent = await answer(proxy);
    expect(sent).not.toBe('');
    const most = MAX_GROWTH * Buffer.byteLength(body) + (OWN_BYTES[name] ?? 0);
    expect(Buffer.byteLength(sent)).toBeLessThanOrEqual(most);
    growths.push({ growth: Buffer.byteLength(sent) / Buffer.byteLength(body), what: `${name}: ${what}` });
  });
});
