// These location lists once blocked the event loop for seconds.
import { describe, expect, test } from 'vitest';
import { PREFIX, startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';
import { thorough } from '../support/thorough.js';

useNock();

const plain = value(2, 'URL', 'https://plain.example.org/');
const times = (count: number, write: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => write(at)).join('');
const list = (locations: string): unknown[] => [value(1, '10320/loc', `<locations>${locations}</locations>`)];
const place = (id: string, attributes: string): string =>
  `<location href="https://${id}.example.org/" ${attributes}/>`;

describe('redirect with a large location list', () => {
  test.each([
    ['hexadecimal', `0x${'d'.repeat(100_000)}`],
    ['decimal', '1'.repeat(100_000)],
  ])('ignores a %s number of 100 KB', async (_kind, number) => {
    const leads = await startLeads({
      score: list(
        place('long', `score="${number}"`) + place('hex', 'score="0x1p9"') + place('best', 'score="1"'),
      ),
      weight: list(place('one', `weight="${number}"`) + place('other', 'weight="0"')),
    });
    for (let count = 0; count < 3; count++) {
      expect(await leads.to(`score?${count}`)).toEqual([302, 'https://best.example.org/']);
      expect(await leads.to(`weight?${count}`)).toEqual([302, 'https://one.example.org/']);
    }
  });

  test('searches up to 10,000 address ranges, and skips a longer list', async () => {
    const ranges = (count: number): string =>
      times(count, (at) => `10.${at >> 8}.${at & 255}.0/24,`).slice(0, -1);
    const near = place('near', 'addresses="127.0.0.1"');
    const leads = await startLeads({
      within: list(times(10, () => place('far', `addresses="${ranges(999)}"`)) + near),
      beyond: [...list(times(60, () => place('far', `addresses="${ranges(1000)}"`)) + near), plain],
      fifty: list(times(50, (at) => `<include>${PREFIX}/big-${at % 10}</include>`) + near),
      ...Object.fromEntries(
        Array.from({ length: 10 }, (_, at) => [
          `big-${at}`,
          list(times(10, () => place(`far-${at}`, `addresses="${ranges(1000)}"`))),
        ]),
      ),
    });
    for (let count = 0; count < thorough(3, 1); count++) {
      expect(await leads.to(`within?${count}`)).toEqual([302, 'https://near.example.org/']);
      expect(await leads.to(`beyond?${count}`)).toEqual([302, 'https://plain.example.org/']);
      expect(await leads.to(`fifty?${count}`)).toEqual([302, 'https://near.example.org/']);
    }
  });

  test('selects the only location with a weight, after 9,000 with an anchor-id and weight 0', async () => {
    const anchored = times(9000, (at) =>
      place(String(at), `rel="a" id="${at}" anchor-id="${at}x" weight="0"`),
    );
    const leads = await startLeads({ anchored: list(anchored + place('main', '')) });
    for (let count = 0; count < thorough(20, 3); count++) {
      expect(await leads.to(`anchored?${count}`)).toEqual([302, 'https://main.example.org/']);
    }
  });

  test('truncates showurls at 1 MiB for 9,900 templates and a long handle', async () => {
    const handle = `long-${'ü'.repeat(980)}`;
    const leads = await startLeads({ [handle]: list('<location href_template="{hdl}"/>'.repeat(9900)) });
    const { status, text } = await leads.get(`${encodeURIComponent(handle)}?action=showurls`);
    expect(status).toBe(200);
    expect(text.length).toBeLessThan(1024 * 1024 + 200);
    expect(text).toMatch(
      /<!-- \d+ more locations are left out: at most 1 MiB is shown -->\n<\/locations>\n$/,
    );
  });
});
