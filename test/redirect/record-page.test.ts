import { describe, expect, test } from 'vitest';
import { startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';

useNock();

const admin = (permissions: string) => ({
  index: 100,
  type: 'HS_ADMIN',
  data: { format: 'admin', value: { handle: '0.NA/21.T11998', index: 200, permissions } },
  ttl: 86400,
});

/** Returns the text of the record page for `values`. */
async function textOfPage(values: unknown[]): Promise<string> {
  const leads = await startLeads({ abc: values });
  const { text } = await leads.get('abc?noredirect');
  return text.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
}

describe('record page', () => {
  test.each([
    [86400, 'one day'],
    [3600, 'one hour'],
    [60, 'one minute'],
    [1, 'one second'],
    [90, 'one minute and 30 seconds'],
    [172_800, '2 days'],
    [100_000, 'one day, 3 hours, 46 minutes and 40 seconds'],
    [2_147_483_647, '24855 days, 3 hours, 14 minutes and 7 seconds'],
    [0, 'not cached'],
    [1.5, '1.5 s'],
    ['2026-11-21T11:00:00Z', 'until 2026-11-21 11:00:00 UTC'],
    ['soon', 'until soon'],
  ])('shows a TTL of %j as "%s"', async (ttl, words) => {
    expect(await textOfPage([value(1, 'DESC', 'text', ttl)])).toContain(` text ${words} 2026-11-21`);
  });

  test('has the handle as its title', async () => {
    const leads = await startLeads({ abc: [value(1, 'DESC', 'text')] });
    const { text } = await leads.get('abc?noredirect');
    expect(text).toContain('<title>21.T11998/abc – Handle resolver</title>');
  });

  test('shows the time of a change with its zone', async () => {
    expect(await textOfPage([value(1, 'DESC', 'text')])).toContain('one day 2026-11-21 09:00:00 UTC');
  });

  test('shows where its record comes from', async () => {
    const leads = await startLeads({ abc: [value(1, 'DESC', 'text')] });
    const source = async () =>
      /<dt>Source<\/dt>\s*<dd>(.*)<\/dd>/.exec((await leads.get('abc?noredirect')).text)?.[1];
    expect(await source()).toBe('Handle server, just now');
    expect(await source()).toBe('memory');
    leads.upstream.answers({ status: 500, body: '' });
    leads.pass(24 * 3_600_000);
    expect(await source()).toBe('stale entry');
  });

  test('counts locations from one, whatever their ids', async () => {
    const listOf = (...places: string[]): unknown[] => [
      value(
        1,
        '10320/loc',
        `<locations>${places.map((place) => `<location ${place}/>`).join('')}</locations>`,
      ),
    ];
    const leads = await startLeads({
      named: listOf(
        'id="0" href="https://a.example.org/" weight="0"',
        'id="1" href="https://b.example.org/"',
      ),
      unnamed: listOf('href="https://a.example.org/" weight="0"', 'href="https://b.example.org/"'),
      one: listOf('id="0" href="https://a.example.org/"'),
    });
    const reason = ': it is the only one left with a weight.';
    expect((await leads.get('named?noredirect')).text).toContain(`Location 2 of 2 (id 1)${reason}`);
    expect((await leads.get('unnamed?noredirect')).text).toContain(`Location 2 of 2${reason}`);
    expect((await leads.get('one?noredirect')).text).toContain('The only location.');
  });

  test('writes handles and URLs from left to right, and leaves the direction of other text to its language', async () => {
    const leads = await startLeads({
      'سجل/abc': [
        value(1, 'URL', 'https://example.org/سجل/abc'),
        value(2, 'HS_ALIAS', '21.T11998/سجل'),
        value(3, 'DESC', 'سجل'),
      ],
    });
    const { text } = await leads.get(`${encodeURIComponent('سجل/abc')}?noredirect&ignore_aliases`);
    expect(text).toContain('<bdi id="handle" dir="ltr">21.T11998/سجل/abc</bdi>');
    expect(text).toContain('<bdi dir="ltr">https://example.org/سجل/abc</bdi>');
    expect(text).toContain('<bdi dir="ltr">21.T11998/سجل</bdi>');
    expect(text).toContain('<bdi>سجل</bdi>');
  });

  test('shows permissions below the table when they are common to all values', async () => {
    const text = await textOfPage([
      value(1, 'DESC', 'one'),
      { ...value(2, 'DESC', 'two'), permissions: '1110' },
    ]);
    expect(text).toContain(
      'Permissions of each value: everyone may read, administrators may read and write.',
    );
  });

  test('shows permissions next to each value when they differ', async () => {
    const text = await textOfPage([
      value(1, 'DESC', 'one'),
      { ...value(2, 'DESC', 'two'), permissions: '0010' },
      { ...value(3, 'DESC', 'three'), permissions: '1111' },
    ]);
    expect(text).toContain('everyone may read, administrators may read and write 1110');
    expect(text).toContain('everyone may read, administrators may neither read nor write 0010');
    expect(text).toContain('everyone may read and write, administrators may read and write 1111');
    expect(text).not.toContain('of each value');
  });

  test.each([
    ['111111111111', 'may do everything'],
    ['000000000000', 'may do nothing'],
    [
      '011111110011',
      'may do everything, except create derived prefixes, delete derived prefixes and list handles',
    ],
    ['000001110000', 'may change values, remove values and add values'],
    ['010000000001', 'may create handles and read values'],
  ])('describes administrator rights %s as "%s"', async (permissions, words) => {
    expect(await textOfPage([admin(permissions)])).toContain(`200: 0.NA/21.T11998 ${words} (${permissions})`);
  });

  test('has no empty link for an alias or a reference without a handle', async () => {
    const reference = {
      index: 3,
      type: 'HS_VLIST',
      data: { format: 'vlist', value: [{ handle: '', index: 300 }] },
    };
    const leads = await startLeads({ abc: [value(1, 'DESC', 'x'), value(2, 'HS_ALIAS', ' '), reference] });
    const { text } = await leads.get('abc?noredirect&ignore_aliases');
    expect(text).toContain('300:');
    expect(text).not.toContain('<bdi dir="ltr"></bdi>');
  });

  test('shows rights unchanged if they are not twelve digits', async () => {
    expect(await textOfPage([admin('1111')])).toContain('200: 0.NA/21.T11998 1111 ');
  });
});
