// Uncached includes cause one upstream request each, and a bounded number per client request.
import { describe, expect, test } from 'vitest';
import { type Leads, PREFIX, startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';
import { oneIn } from '../support/thorough.js';
import { type Answer, notFound, recordOf } from '../support/upstream.js';
import { mockWrites } from '../support/writes.js';

useNock();

const COUNT = 200;
const suffixes = Array.from({ length: COUNT }, (_, at) => `part-${at}`);
const own = '<location href="https://own.example.org/" weight="0"/>';
const including = (names: readonly string[], more = own): unknown[] => [
  value(
    1,
    '10320/loc',
    `<locations>${names.map((name) => `<include>${PREFIX}/${name}</include>`).join('')}${more}</locations>`,
  ),
];
const part = (name: string, ttl: number): unknown[] => [
  value(1, '10320/loc', `<locations><location href="https://${name}.example.org/"/></locations>`, ttl),
];

const askedFor = ({ upstream }: Leads, name: string): number =>
  upstream.targets.filter((target) => target.split('?')[0] === `/api/handles/${PREFIX}/${name}`).length;
const askedForParts = (leads: Leads): number =>
  suffixes.reduce((sum, name) => sum + askedFor(leads, name), 0);
const shown = async (leads: Leads, path: string): Promise<number | undefined> =>
  (await leads.get(`${path}?action=showurls`)).text.match(/<location /g)?.length;

const REFUSALS = {
  'foreign prefix': { status: 400, body: { responseCode: 301 } },
  forbidden: { status: 403, body: { responseCode: 400 } },
};

describe('included record', () => {
  test.each(oneIn(2, Object.entries(REFUSALS)))(
    'is requested once per upstream.retryAfter, even when 200 includes are rejected (%s)',
    async (_name, refusal) => {
      const leads = await startLeads({});
      leads.upstream.answers((target) =>
        target.includes('part-') ? refusal : recordOf(including(suffixes), `${PREFIX}/all`),
      );
      for (let times = 0; times < 12; times++) {
        const before = leads.upstream.asked;
        expect(await leads.to(`all?${times}`)).toEqual([302, 'https://own.example.org/']);
        expect(leads.upstream.asked - before).toBeLessThanOrEqual(26);
      }
      expect(askedForParts(leads)).toBe(COUNT);
      // 5,000 ms is `upstream.retryAfter`.
      leads.pass(4999);
      await leads.to('all?later');
      expect(askedForParts(leads)).toBe(COUNT);
      leads.pass(1);
      await leads.to('all?again');
      expect(askedForParts(leads)).toBe(COUNT + 25);
    },
  );

  test('remains rejected while the server fails, so that the response can be stored', async () => {
    const names = suffixes.slice(0, 60);
    const leads = await startLeads({});
    const answerParts = (answer: Answer): void => {
      leads.upstream.answers((target) =>
        target.includes('part-') ? answer : recordOf(including(names), `${PREFIX}/all`),
      );
    };
    const askThrice = async (): Promise<unknown> => {
      for (let times = 0; times < 3; times++) await leads.to(`all?${times}`);
      return (await leads.get('all')).headers['cache-control'];
    };
    answerParts(REFUSALS.forbidden);
    expect(await askThrice()).toMatch(/^public/);
    answerParts({ status: 500, body: '' });
    leads.pass(5000);
    expect(await askThrice()).toMatch(/^public/);
  });

  test('is requested once for several responses when its TTL is 0, and updated immediately after a write', async () => {
    const leads = await startLeads({ all: including(['short']), short: part('short', 0) });
    for (let times = 0; times < 3; times++) expect(await shown(leads, 'all')).toBe(2);
    expect(askedFor(leads, 'short')).toBe(1);
    mockWrites({ status: 200, body: '{"responseCode":1}' });
    leads.put({ short: including([], '') });
    const path = `/api/handles/${PREFIX}/short`;
    expect((await leads.ask(path, { method: 'PUT', body: '{"values":[]}' })).status).toBe(200);
    expect(await shown(leads, 'all')).toBe(1);
    expect(askedFor(leads, 'short')).toBe(2);
  });

  test('is not read after lists of 20,000 elements, which leave no room for its own', async () => {
    const names = suffixes.slice(0, 25);
    const large = including([], `<location href="https://a.example.org/" addresses="${','.repeat(8999)}"/>`);
    const leads = await startLeads({
      all: including(names),
      ...Object.fromEntries(names.map((name) => [name, large])),
    });
    expect(await shown(leads, 'all')).toBe(1 + 2);
    // Ten are read at the same time.
    expect(askedForParts(leads)).toBe(10);
  });

  test('is loaded once per ?auth request, which loads at most 25 includes', async () => {
    const names = suffixes.slice(0, 60);
    const leads = await startLeads({
      all: including([...names, ...names]),
      ...Object.fromEntries(names.map((name) => [name, part(name, 86_400)])),
      few: including(['part-0', 'part-0', 'part-1']),
    });
    for (let times = 1; times <= 3; times++) {
      await leads.get('all?auth&action=showurls');
      expect(askedForParts(leads)).toBe(25 * times);
    }
    await leads.to('few?auth');
    expect(askedForParts(leads)).toBe(25 * 3 + 2);
    expect(askedFor(leads, 'part-0')).toBe(4);
  });

  test('prevents a response from being stored until all includes are loaded', async () => {
    const names = suffixes.slice(0, 30);
    const leads = await startLeads({
      all: including(names),
      ...Object.fromEntries(names.map((name) => [name, part(name, 86_400)])),
    });
    const cacheControl = async (): Promise<unknown> => (await leads.get('all')).headers['cache-control'];
    expect(await cacheControl()).toBe('no-store');
    expect((await leads.get('all')).headers.expires).not.toBe('0');
    expect(await shown(leads, 'all')).toBe(31);
  });

  test('is omitted when its read fails, and the response is not stored', async () => {
    const leads = await startLeads({});
    leads.upstream.answers((target) => {
      if (target.includes('part-')) return { status: 500, body: '' };
      return target.endsWith('all') ? recordOf(including(['part-1']), `${PREFIX}/all`) : notFound();
    });
    const { headers } = await leads.get('all');
    expect([headers.location, headers['cache-control']]).toEqual(['https://own.example.org/', 'no-store']);
  });
});
