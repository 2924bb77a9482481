// Hostile records cause no harm and have a bounded cost.
import { describe, expect, test } from 'vitest';
import { cpuMs } from '../support/cpu-time.js';
import { startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';
import { finish } from '../support/steps.js';
import { createLocationListParser, parseLocationList } from '../../src/plugins/locations/location-list.js';

useNock();

const plain = value(2, 'URL', 'https://plain.example.org/');
const PLAIN = [302, 'https://plain.example.org/'];

const LAUGHS = `<?xml version="1.0"?><!DOCTYPE locations [<!ENTITY a "ha">${'bcdefghij'
  .split(/(?=.)/)
  .map((name, at) => `<!ENTITY ${name} "${`&${'abcdefghi'[at]!};`.repeat(10)}">`)
  .join('')}]><locations><location href="https://a.example.org/&j;"/></locations>`;
const BOMBS = {
  laughs: LAUGHS,
  quadratic: `<!DOCTYPE l [<!ENTITY a "${'a'.repeat(50_000)}">]><locations><location href="${'&a;'.repeat(20_000)}"/></locations>`,
  file: '<!DOCTYPE l [<!ENTITY x SYSTEM "file:///etc/passwd">]><locations><location href="https://x/&x;"/></locations>',
  remote: '<!DOCTYPE l SYSTEM "http://evil.test/x.dtd"><locations><location href="https://x/"/></locations>',
  deep: '<a>'.repeat(100_000),
  attributes: `<locations><location ${Array.from({ length: 50_000 }, (_, at) => `a${at}=""`).join(' ')}`,
  comment: `<!--${'-'.repeat(1_000_000)}`,
  huge: `<locations>${'<location href="https://a.example.org/"/>'.repeat(20_000)}</locations>`,
  larger: `<locations><location href="https://a.example.org/"/></locations>${' '.repeat(1024 * 1024)}`,
};

describe('redirect of a hostile record', () => {
  test('falls back to the URL value for an XML bomb in bounded time', async () => {
    const leads = await startLeads(
      Object.fromEntries(
        Object.entries(BOMBS).map(([name, xml]) => [name, [value(1, '10320/loc', xml), plain]]),
      ),
    );
    for (const name of Object.keys(BOMBS)) {
      expect(await leads.to(name), name).toEqual(PLAIN);
      const ms = await cpuMs(async () => {
        for (let times = 0; times < 20; times++)
          expect(await leads.to(`${name}?x=${times}`), name).toEqual(PLAIN);
      });
      // The location list is parsed once, but each request still pays for its own work and the record JSON.
      expect(ms / 20, name).toBeLessThan(100);
    }
  });

  test('selects one of 5,000 locations in bounded time', async () => {
    const places = Array.from(
      { length: 5000 },
      (_, at) => `<location id="${at}" href="https://example.org/${at}" country="c${at % 200}"/>`,
    );
    const xml = `<locations chooseby="locatt,country,weighted">${places.join('')}</locations>`;
    const leads = await startLeads({ many: [value(1, '10320/loc', xml)] });
    expect(await leads.to('many?locatt=id:4999')).toEqual([302, 'https://example.org/4999']);
    const ms = await cpuMs(async () => {
      for (let times = 0; times < 50; times++) {
        expect((await leads.to('many'))[1]).toMatch(/^https:\/\/example\.org\/\d+$/);
        expect((await leads.to(`many?country=c${times}`))[1]).toMatch(/^https:\/\/example\.org\/\d+$/);
        expect(await leads.to(`many?locatt=id:${times}`)).toEqual([302, `https://example.org/${times}`]);
      }
    });
    expect(ms / 150).toBeLessThan(100);
    const shown = await leads.get('many?noredirect');
    expect(shown.status).toBe(200);
    expect((await leads.get('many?action=showurls')).text.match(/<location /g)).toHaveLength(5000);
  });

  test('exposes no browser-executable element in location XML', async () => {
    const xml =
      '<locations><location xmlns="http://www.w3.org/1999/xhtml" xmlns:s="http://www.w3.org/2000/svg" s:onload="x()"' +
      ' onfocus="alert(1)" autofocus="" tabindex="1" href="https://a.example.org/&quot;&gt;&lt;script&gt;&#10;"/></locations>';
    const leads = await startLeads({
      scripted: [value(1, '10320/loc', xml), value(2, 'URL', '"/><script\u0001')],
    });
    const { text } = await leads.get('scripted?action=showurls');
    expect(text).not.toMatch(/xmlns|s:onload|<script/);
    expect(text).toContain('href="https://a.example.org/&#34;&#62;&#60;script&#62;&#10;"');
    expect(text).toContain('href="&#34;/&#62;&#60;script\ufffd"');
  });

  test('escapes the values on the page', async () => {
    const leads = await startLeads({
      odd: [
        value(1, '<script>alert(1)</script>', '"><img src=x onerror=alert(1)>'),
        { index: 2, type: 'A', data: null },
        {
          index: 3,
          type: 'B',
          data: { format: 'vlist', value: [{ handle: '21.T11998/\ud800', index: 1 }, null] },
        },
        {
          index: 4,
          type: 'C',
          data: { format: 'admin', value: { handle: '"><script>', index: 1, permissions: '<b>' } },
        },
        { index: 5, type: 'D', data: { format: 'hex', value: 'ff'.repeat(5000) } },
        {
          index: 6,
          type: 'E',
          data: { format: 'string', value: 'x'.repeat(50_000) },
          ttl: 'no <date>',
          timestamp: '<i>',
        },
        { index: 7, type: 'HS_ALIAS', data: { format: 'string', value: '' } },
        { index: 8, type: 'EMAIL', data: { format: 'string', value: 'a@b?bcc=c@d' } },
        { index: 9, type: 'F', data: { format: 'string', value: '\0\ud800\u202e' }, permissions: '1110' },
        // These permissions are invalid, so the value is treated as private.
        { index: 10, type: 'G', data: { format: 'string', value: 'private' }, permissions: '<u1>' },
      ],
    });
    const { status, text } = await leads.get('odd?noredirect');
    expect(status).toBe(200);
    expect(text.match(/<script/g)).toHaveLength(1);
    expect(text).not.toMatch(/<img|<b>|<i>|<u1>|onerror=a[^&]*"|private/);
    expect(text.match(/<tr role="row">/g)).toHaveLength(10);
  });
});

describe('cached location list parser', () => {
  test('parses lists correctly beyond the limit of its cache', () => {
    const parse = createLocationListParser();
    const read = (text: string) => finish(parse(text));
    const xml = (number: number): string =>
      `<locations><location href="https://a/" id="${number}"/>${' '.repeat(100_000)}</locations>`;
    for (let number = 0; number < 200; number++) {
      expect(read(xml(number))).toEqual(finish(parseLocationList(xml(number))));
      expect(read(xml(number))).toBe(read(xml(number)));
    }
  });

  const MIB = 1024 * 1024;
  const repeatTo = (chars: number, write: (at: number) => string): string => {
    let text = '';
    for (let at = 0; text.length < chars; at++) text += write(at);
    return text;
  };
  const location = (write: (at: number) => string): string =>
    `<location ${Array.from({ length: 90 }, (_, at) => write(at)).join(' ')}/>`;

  // The heap for each, measured: 14 to 30 MB for the attributes of a list, and 2.9 MB for the decoded text.
  const large: [string, number, (list: number) => string][] = [
    ['short attributes', 5, (list) => repeatTo(MIB - 2000, (n) => location((at) => `a${at}=${list}${n}`))],
    [
      'attributes with different names',
      3,
      (list) => repeatTo(MIB - 2000, (n) => location((at) => `a${list}.${n}.${at}`)),
    ],
    ['decoded text', 17, (list) => `<location href="${'x'.repeat(MIB - 100)}&#x4e2d;${list}"/>`],
  ];
  test.each(large)('keeps as many lists as fit into 64 MiB of heap: %s', (_what, count, write) => {
    const parse = createLocationListParser();
    const read = (list: number) => finish(parse(`<l>${write(list)}</l>`));
    const first = read(0);
    expect(first?.locations.length).toBeGreaterThan(0);
    for (let list = 1; list < count; list++) read(list);
    expect(read(0)).not.toBe(first);
  });

  test('keeps thousands of ordinary lists', () => {
    const parse = createLocationListParser();
    const place = '<location id="0" country="de" href="https://example.org/" weight="1"/>';
    const read = (list: number) => finish(parse(`<l chooseby="country">${place.repeat(3)}${list}</l>`));
    const first = read(0);
    for (let list = 1; list < 10_000; list++) read(list);
    expect(read(0)).toBe(first);
  });
});
