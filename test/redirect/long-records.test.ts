// The page of a long record shows its first part; the cost does not depend on the rest.
import { describe, expect, test } from 'vitest';
import { valuesTable } from '../../src/plugins/pages/record-page.js';
import { shownPart } from '../../src/plugins/pages/value-html.js';
import { startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { countSteps } from '../support/steps.js';
import { mockUpstream } from '../support/upstream.js';

useNock();

const MIB = 1024 * 1024;
const JSON_LINK = '<a href="/api/handles/21.T11998/abc?pretty">The JSON has everything.</a>';

async function pageOf(values: unknown[]): Promise<string> {
  const leads = await startLeads({ abc: values }, { UPSTREAM_MAX_RECORD_SIZE: '16MiB' });
  const { status, text } = await leads.get('abc?noredirect');
  expect(status).toBe(200);
  return text;
}

const rowsOf = (page: string): number => page.match(/<td role="cell" data-label="Index"/g)?.length ?? 0;

describe('page of a long record', () => {
  test('shows the first 200 of 20,000 values with the total and a link to the JSON', async () => {
    const page = await pageOf(
      Array.from({ length: 20_000 }, (_, at) => value(at + 1, 'DESC', `text <${at}>`)),
    );
    expect(rowsOf(page)).toBe(200);
    expect(page).toContain('text &#60;199&#62;');
    expect(page).not.toContain('text &#60;200&#62;');
    expect(page).toContain(`This page shows the first 200 of 20,000 values. ${JSON_LINK}`);
  });

  test('shows all values of a record with 200 values', async () => {
    const page = await pageOf(Array.from({ length: 200 }, (_, at) => value(at + 1, 'DESC', 'text')));
    expect(rowsOf(page)).toBe(200);
    expect(page).not.toContain('This page shows');
  });

  test('stops after 64 KiB of values', async () => {
    const page = await pageOf(
      Array.from({ length: 100 }, (_, at) => value(at + 1, 'DESC', 'x'.repeat(10_000))),
    );
    expect(rowsOf(page)).toBe(7);
    expect(page).toContain('This page shows the first 7 of 100 values.');
    expect(page.length).toBeLessThan(100_000);
  });

  test('truncates a long value and shows the following values', async () => {
    const page = await pageOf([
      value(1, 'DESC', 'x'.repeat(MIB)),
      value(2, 'URL', 'https://example.org/short'),
      value(3, 'URL', `https://example.org/${'x'.repeat(MIB)}`),
    ]);
    expect(rowsOf(page)).toBe(3);
    expect(page).toContain('>https://example.org/short</bdi></a>');
    expect(page).toContain(`This page shows only the beginning of long values. ${JSON_LINK}`);
    expect(page.match(/Cut here\./g)).toHaveLength(2);
    expect(page).not.toContain('href="https://example.org/xxx');
    expect(page.length).toBeLessThan(60_000);
  });

  const ofData = (format: string, data: unknown) => ({ ...value(1, 'X', ''), data: { format, value: data } });
  const nested = (depth: number): unknown => JSON.parse('['.repeat(depth) + ']'.repeat(depth));

  test.each<[string, unknown]>([
    ['a type', { ...value(1, 'T'.repeat(MIB), 'text') }],
    ['a TTL', { ...value(1, 'DESC', 'text', 'soon'.repeat(MIB)) }],
    ['a timestamp', { ...value(1, 'DESC', 'text'), timestamp: '2'.repeat(MIB) }],
    ['permissions', { ...value(1, 'DESC', 'text'), permissions: '1'.repeat(MIB) }],
    ['a format', ofData('f'.repeat(MIB), 'text')],
    ['bytes', ofData('base64', 'QUJD'.repeat(MIB))],
    ['a list of references', ofData('vlist', Array(50_000).fill({ handle: '21.T11998/abc', index: 1 }))],
    ['a reference', ofData('admin', { handle: 'x'.repeat(MIB), index: 1, permissions: '1'.repeat(MIB) })],
    ['a site record', ofData('site', { servers: Array(50_000).fill({ address: '192.0.2.1' }) })],
    [
      'an object with many members',
      ofData('x', Object.fromEntries([...Array(1000).keys()].map((n) => [n, 'x'.repeat(1000)]))),
    ],
    ['a list of empty lists', ofData('x', Array(65_000).fill([]))],
    ['deeply nested lists', ofData('x', Array(1000).fill(nested(58)))],
    ['an invalid target URL', value(1, 'URL', 'no:'.repeat(MIB))],
    ['the type of the target', value(1, `URL.${'&'.repeat(MIB)}`, 'https://example.org/')],
  ])('stays below 150 kB for an excessive value: %s', async (_what, long) => {
    const page = await pageOf([long]);
    expect(page).toContain('The JSON has everything.');
    expect(page.length).toBeLessThan(150_000);
  });

  test('names the chosen value and location by the first 100 characters of a long type and id', async () => {
    const typed = value(2, `URL.${'x'.repeat(500)}`, 'https://example.org/');
    const place = `<location id="${'y'.repeat(500)}" href="https://example.org/"/>`;
    const weightless = '<location href="https://example.org/2" weight="0"/>';
    const leads = await startLeads({
      alone: [typed],
      legacy: [value(1, '10320/loc', '<l></l>'), typed],
      located: [value(1, '10320/loc', `<l>${weightless}${place}</l>`)],
    });
    const reasonOf = async (suffix: string): Promise<string | undefined> =>
      /(?:It is|Location) [^<]*/.exec((await leads.get(`${suffix}?noredirect`)).text)?.[0];
    const named = `It is the URL.${'x'.repeat(96)}… value at index 2`;
    expect(await reasonOf('alone')).toBe(`${named}, the first of its type.`);
    expect(await reasonOf('legacy')).toBe(`${named}.`);
    expect(await reasonOf('located')).toBe(
      `Location 2 of 2 (id ${'y'.repeat(100)}…): it is the only one left with a weight.`,
    );
  });

  test('shows the beginning of a message of the Handle server', async () => {
    mockUpstream({ status: 400, body: { responseCode: 202, message: '&'.repeat(60_000) } });
    const { text } = await (await startProxy()).ask('/21.T11998/abc?noredirect');
    expect(text).toContain(`${'&#38;'.repeat(2000)}…</bdi>`);
    expect(text.length).toBeLessThan(30_000);
  });

  test('returns 404 for an alias longer than a handle, without requesting its target', async () => {
    const leads = await startLeads({ abc: [value(1, 'HS_ALIAS', 'x'.repeat(MIB))] });
    const { status, text } = await leads.get('abc');
    expect(status).toBe(404);
    expect(text).toContain('Its alias is longer than a handle can be.');
    expect(text.length).toBeLessThan(20_000);
    expect(leads.upstream.targets.some((target) => target.length > 10_000)).toBe(false);
  });

  test('escapes markup in the shown part only', async () => {
    const page = await pageOf([value(1, 'DESC', '<'.repeat(MIB))]);
    const escaped = page.match(/&#60;/g)?.length ?? 0;
    expect(escaped).toBeGreaterThan(16_000);
    // The collapsed preview repeats the first 80 characters.
    expect(escaped).toBeLessThanOrEqual(16 * 1024 + 80);
  });

  test('is rendered without reading the values after the shown part', () => {
    let reads = 0;
    const values = new Proxy(
      Array.from({ length: 1000 }, (_, at) => ({ index: at, type: 'DESC', data: 'text' })),
      {
        get(list, name) {
          if (typeof name === 'string' && /^\d+$/.test(name)) reads++;
          return Reflect.get(list, name) as unknown;
        },
      },
    );
    expect(shownPart(values)).toHaveLength(200);
    expect(reads).toBeLessThanOrEqual(201);
  });

  test('is written row by row so that other requests can be served', () => {
    const values = Array.from({ length: 200 }, (_, at) => ({ index: at, type: 'DESC', data: 'text' }));
    expect(countSteps(valuesTable(values, '/')).steps).toBe(200);
  });

  test('ends a truncated reference list at an element boundary', () => {
    const references = Array.from({ length: 10_000 }, (_, at) => ({ handle: '21.T11998/admin', index: at }));
    const [shown] = shownPart([{ index: 1, type: 'HS_VLIST', data: { format: 'vlist', value: references } }]);
    const { value: list } = shown!.data as { value: typeof references };
    expect(list).toEqual(references.slice(0, list.length));
    expect(list.length).toBeGreaterThan(100);
  });
});
