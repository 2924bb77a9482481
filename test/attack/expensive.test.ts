// Deliberately expensive requests: their CPU time is bounded.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { textValue } from '../../src/dev-server/seed.js';
import { cpuMs } from '../support/cpu-time.js';
import { startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS } from '../support/demo-writes.js';
import { startProxy } from '../support/proxy.js';

const demo = await startDemoServer();

describe('CPU time of an expensive request', () => {
  test('is bounded for a record of 2,000 values filtered by 900 types', async () => {
    demo.put(
      '21.T11998/many',
      Array.from({ length: 2000 }, (_, at) => textValue(at + 1, `TYPE.${at}`, 'x')),
    );
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    const askTenTimes = (query: string) =>
      cpuMs(async () => {
        for (let count = 0; count < 10; count++)
          expect((await proxy.ask(`/api/handles/21.T11998/many?index=7&${query}any=${count}`)).status).toBe(
            200,
          );
      });
    await askTenTimes('');
    const plainMs = await askTenTimes('other=x&'.repeat(900));
    expect(await askTenTimes('type=x.&'.repeat(900))).toBeLessThan(5 * plainMs + 100);
  });

  test('is bounded for a body of 55,000 references sent with an unverified login', async () => {
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    const value = { type: 'URL', parsed_data: 'x', refs: Array<string>(50).fill('1:a/b') };
    const body = JSON.stringify(Array<typeof value>(1100).fill(value));
    const headers = { ...WRITE_HEADERS, Authorization: `Basic ${btoa('300%3A21.T11998/USER01:wrong')}` };
    const ms = await cpuMs(async () => {
      const answer = await proxy.ask('/api/v2/handles/21.T11998/refs', { method: 'PUT', headers, body });
      expect(answer.status).toBe(401);
    });
    expect(ms).toBeLessThan(3000);
  });

  test('is bounded for a search with a long part in a text of like characters', async () => {
    demo.put('21.T11998/like', [textValue(1, 'DESC', 'a'.repeat(1_000_000))]);
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    const searchMs = (part: string) =>
      cpuMs(async () => {
        const { status, text } = await proxy.ask(`/api/v2/handles/21.T11998?DESC=*${part}*`, {
          headers: WRITE_HEADERS,
        });
        expect([status, text]).toEqual([200, '[]']);
      });
    await searchMs('b');
    const plainMs = await searchMs('b');
    expect(await searchMs(`${'a'.repeat(3500)}b${'a'.repeat(3500)}`)).toBeLessThan(5 * plainMs + 100);
  });

  describe('is bounded for a hostile record', () => {
    const located = (name: string, attributes: string, locations: string[]): void => {
      const xml = `<locations ${attributes}>${locations.join('')}</locations>`;
      demo.put(`21.T11998/${name}`, [textValue(1, '10320/LOC', xml)]);
    };
    const places = (count: number, attributes: string): string[] =>
      Array.from({ length: count }, (_, at) => `<location href="https://example.org/${at}" ${attributes}/>`);

    const redirectsMs = async (name: string, query: string, headers: Record<string, string> = {}) => {
      const proxy = await startProxy({ UPSTREAM_URL: demo.url });
      await proxy.ask(`/21.T11998/${name}`);
      return cpuMs(async () => {
        for (let count = 0; count < 3; count++)
          // If the selected location has no usable address, the response is a page instead of a redirect.
          expect([200, 302]).toContain(
            (await proxy.ask(`/21.T11998/${name}?${query}any=${count}`, { headers })).status,
          );
      });
    };

    test('that has thousands of locations selected by Accept', async () => {
      located('conneg', '', places(8000, 'http_role="conneg" type="a/b"'));
      const accept = Array.from({ length: 100 }, (_, at) => `x/${at};q=0.5`).join(',');
      expect(await redirectsMs('conneg', '', { Accept: accept })).toBeLessThan(2000);
    });

    test('that has a chain of 50,000 selectors', async () => {
      located('chain', `chooseby="${'country,'.repeat(50_000)}"`, places(8000, ''));
      expect(await redirectsMs('chain', '')).toBeLessThan(2000);
    });

    test('that has thousands of locations and is queried for hundreds of attributes', async () => {
      located('places', '', places(8000, ''));
      const query = Array.from({ length: 500 }, (_, at) => `locatt=a${at}:b&`).join('');
      expect(await redirectsMs('places', query)).toBeLessThan(2000);
    });

    test('whose template names the handle 100,000 times', async () => {
      const name = `template-${'x'.repeat(1500)}`;
      located(name, '', [
        `<location href_template="https://example.org/${'{hdl}'.repeat(100_000)}"/>`,
        '<location href="https://example.org/plain"/>',
      ]);
      const before = process.memoryUsage().rss;
      expect(await redirectsMs(name, '')).toBeLessThan(2000);
      expect((process.memoryUsage().rss - before) / 1024 ** 2).toBeLessThan(100);
    });

    test('whose links need escaping', async () => {
      const links = (letter: string) =>
        Array.from({ length: 60 }, () => `<location rel="item" href="http://a/${letter.repeat(7900)}"/>`);
      located('letters', '', links('x'));
      located('backslashes', '', links('\\'));
      const plainMs = await redirectsMs('letters', '');
      expect(await redirectsMs('backslashes', '')).toBeLessThan(5 * plainMs + 100);
    });

    test('that has 200 includes of thousands of locations each', async () => {
      located('many-places', '', places(8000, 'ctype="a/b"'));
      located('includes', '', Array<string>(200).fill('<include>21.T11998/many-places</include>'));
      const query = Array.from({ length: 50 }, (_, at) => `locatt=a${at}:b&`).join('');
      expect(await redirectsMs('includes', query)).toBeLessThan(2000);
      expect(await redirectsMs('includes', 'action=showurls&')).toBeLessThan(2000);
    });

    test('whose URL of one megabyte needs re-encoding', async () => {
      const value = `https://${'ü.'.repeat(330_000)}`;
      demo.put('21.T11998/address', [textValue(1, 'URL', value)]);
      const proxy = await startProxy({ UPSTREAM_URL: demo.url });
      const ask = (query: string) => proxy.ask(`/21.T11998/address?${query}`);
      expect((await ask('')).status).toBe(200);
      const questions = Array.from({ length: 10 }, (_, at) => ask(`urlappend=${at}`));
      expect(await cpuMs(() => Promise.all(questions))).toBeLessThan(2500);
    });
  });
});
