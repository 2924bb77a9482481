// The cost of a location list is linear in its bounded input.
import { partial } from '../support/partial.js';
import { BlockList } from 'node:net';
import { fc, test } from '../support/property.js';
import { describe, expect, test as example } from 'vitest';
import { isInRanges, readAddress, readRanges } from '../../src/plugins/locations/addresses.js';
import { candidatesOf, selectLocation } from '../../src/plugins/locations/select.js';
import { type ListReader, gatherLists } from '../../src/plugins/locations/gather.js';
import {
  type HandleLists,
  type LocationList,
  countElements,
  listsIn,
  parseLocationList,
  readDouble,
} from '../../src/plugins/locations/location-list.js';
import { NO_NAMESPACE } from '../../src/plugins/locations/other-records.js';
import { responseHeaders, writeLocations } from '../../src/plugins/locations/target.js';
import { templateForms } from '../../src/plugins/locations/template.js';
import type { Steps } from '../../src/time-slicer.js';
import { countSteps, finish } from '../support/steps.js';
import { rounds } from '../support/property-rounds.js';

const MIB = 1024 * 1024;
const FORMS = templateForms('h');

const list = (locations: readonly string[], settings = ''): string =>
  `<locations ${settings}>${locations.join('')}</locations>`;
const times = (count: number, write: (at: number) => string): string[] =>
  Array.from({ length: count }, (_, at) => write(at));
const parse = (text: string): LocationList | undefined => finish(parseLocationList(text));
const listsOf = (...lists: LocationList[]): HandleLists => ({ lists, links: [], headers: [] });
const alone = (own: HandleLists) => ({ own, included: [], prefix: [], prefixIncluded: [] });
const address = (at: number): string => `10.${(at >> 16) & 255}.${(at >> 8) & 255}.${at & 255}`;

/** Counts reads of location attributes. */
class Counting extends Map<string, string> {
  static reads = 0;
  override get(name: string): string | undefined {
    Counting.reads++;
    return super.get(name);
  }
  override has(name: string): boolean {
    Counting.reads++;
    return super.has(name);
  }
}

function counted({ locations, ...others }: LocationList): LocationList {
  return {
    ...others,
    locations: locations.map((each) => ({ ...each, attributes: new Counting(each.attributes) })),
  };
}

/** Returns the cost of `work` for 1,000 and 2,000 locations: steps plus attribute reads. */
function costs(write: (at: number) => string, work: (list: LocationList) => Steps<unknown>): number[] {
  return [1000, 2000].map((count) => {
    const made = counted(parse(list(times(count, write)))!);
    Counting.reads = 0;
    return countSteps(work(made)).steps + Counting.reads;
  });
}

const facts = { attributes: [], country: 'us', address: '10.0.0.1', random: 0.5 };
const HOSTILE: Record<string, [(at: number) => string, (list: LocationList) => Steps<unknown>]> = {
  'selection by every selector': [
    (at) => `<location href="https://e/${at}" id="${at}" country="us" score="1" addresses="10.0.0.0/8"/>`,
    ({ locations }) =>
      selectLocation(locations, ['locatt', 'address', 'country', 'score'], {
        ...facts,
        attributes: times(10, String).map((value) => ({ name: 'id', value: `x${value}`, by: 'locatt' })),
      }),
  ],
  'links with an unmatched anchor-id': [
    (at) => `<location href="https://e/${at}" rel="a" id="${at}" anchor-id="none"/>`,
    (made) => responseHeaders(alone(listsOf(made)), FORMS, []),
  ],
  'location XML': [
    () => '<location href_template="{hdl}"/>',
    ({ locations }) => writeLocations(locations, 'h'),
  ],
};

describe('location list processing', () => {
  describe('linear cost', () => {
    example.each(Object.entries(HOSTILE))(
      'at most doubles for twice the locations: %s',
      (_name, [write, work]) => {
        const [once = 0, twice = Infinity] = costs(write, work);
        expect(once).toBeGreaterThan(0);
        expect(twice).toBeLessThanOrEqual(2 * once + 10);
      },
    );

    const texts: Record<string, (count: number) => string> = {
      locations: (count) => list(times(count, (at) => `<location href="https://e/${at}" weight="1"/>`)),
      addresses: (count) => list([`<location addresses="${times(count, address).join()}"/>`]),
      'open elements': (count) => '<a>'.repeat(count * 10),
      'texts between comments': (count) => `<a><include>${'x<!--y-->'.repeat(count * 10)}</include></a>`,
      entities: (count) => list([`<location href="${'&amp;&#65;&'.repeat(count * 10)}"/>`]),
    };
    example.each(Object.entries(texts))(
      'at most doubles for twice the input when scanning %s',
      (_name, text) => {
        const steps = (count: number): number => countSteps(parseLocationList(text(count))).steps;
        expect(steps(4000)).toBeLessThanOrEqual(2 * steps(2000) + 10);
      },
    );

    example('gathers URL values as locations in steps', () => {
      const urls = Array.from({ length: 20_000 }, (_, index) => ({ index, type: 'URL', data: undefined }));
      const withList = listsOf(parse('<l><location href="https://e/"/></l>')!);
      for (const own of [listsOf(), withList]) {
        const { steps, value } = countSteps(candidatesOf(alone(own), urls));
        expect(steps).toBeGreaterThanOrEqual(20_000 / 500);
        expect(value.locations).toHaveLength(20_000 + own.lists.length);
      }
    });

    example('is bounded by 200 included handles', async () => {
      const reads: string[] = [];
      const included = listsOf(parse(list(times(300, (at) => `<include>h/${at % 250}</include>`)))!);
      const reader = partial<ListReader>({
        readLists(handle) {
          reads.push(handle);
          return Promise.resolve(included);
        },
        readNamespace: () => Promise.resolve(NO_NAMESPACE),
        readIncludedNamespace: () => Promise.resolve(NO_NAMESPACE),
      });
      const gathered = await gatherLists(included, reader);
      expect(reads).toHaveLength(200);
      expect(gathered.included.flat()).toHaveLength(200);
    });
  });

  describe('address range lookup', () => {
    const v4 = fc.ipV4();
    const v6 = fc.ipV6();
    const range = fc.oneof(
      fc.tuple(v4, fc.nat(40)).map(([text, bits]) => `${text}/${bits}`),
      fc.tuple(v6, fc.nat(140)).map(([text, bits]) => `${text}/${bits}`),
      v4,
      v6,
    );

    test.prop([fc.array(range, { maxLength: 20 }), fc.oneof(v4, v6)], { numRuns: rounds(2000) })(
      'finds an address exactly when one of the ranges contains it',
      (ranges, caller) => {
        const isV4 = (text: string): boolean => text.includes('.') && !text.includes(':');
        const expected = ranges.some((text) => {
          const [network = '', bits = '128'] = text.split('/');
          // Node matches IPv4 against IPv6 with embedded IPv4; the proxy separates the families.
          if (isV4(network) !== isV4(caller) || network.startsWith('::ffff:')) return false;
          const known = new BlockList();
          const family = isV4(network) ? 'ipv4' : 'ipv6';
          known.addSubnet(network, Math.min(Number(bits), isV4(network) ? 32 : 128), family);
          return known.check(caller, family);
        });
        const number = readAddress(caller);
        if (caller.startsWith('::ffff:')) return;
        expect(isInRanges(number!, finish(readRanges(ranges.join(', '))))).toBe(expected);
      },
    );

    example('treats IPv6 with a trailing IPv4 address as IPv6', () => {
      expect(readAddress('::1.2.3.4')).toBe(0x01020304n);
      expect(isInRanges(readAddress('::')!, finish(readRanges('::0.0.0.0/81')))).toBe(true);
    });

    example('requires a logarithmic number of range reads', () => {
      const ranges = finish(readRanges(times(16_384, (at) => address(at * 2)).join()));
      expect(ranges).toHaveLength(16_384);
      let reads = 0;
      const watched = new Proxy(ranges, {
        get(target, name) {
          reads++;
          return Reflect.get(target, name) as unknown;
        },
      });
      expect(isInRanges(readAddress(address(20_000))!, watched)).toBe(true);
      expect(isInRanges(readAddress(address(20_001))!, watched)).toBe(false);
      expect(reads).toBeLessThan(2 * 20);
    });

    example('treats IPv4-mapped and NAT64 addresses by their embedded form', () => {
      const ranges = finish(readRanges('192.0.2.0/24, ::1, fe80::1%eth0, 64:ff9b::192.0.2.33/127'));
      const isIn = (text: string): boolean => isInRanges(readAddress(text) ?? -1n, ranges);
      expect(['::ffff:192.0.2.9', '::FFFF:192.0.2.9', '::1', '64:ff9b::c000:220'].filter(isIn)).toHaveLength(
        4,
      );
      expect(['::ffff:192.0.3.9', '::2', 'fe80::1', '64:ff9b::c000:222', '', 'x'].filter(isIn)).toEqual([]);
    });
  });

  describe('with bounded input and output', () => {
    example('ignores a number longer than 32 characters or not in decimal', () => {
      expect(['1', ' -1.5e3f ', '.5', '5.', 'NaN', '-Infinity', '0'.repeat(32)].map(readDouble)).toEqual([
        1,
        -1500,
        0.5,
        5,
        NaN,
        -Infinity,
        0,
      ]);
      for (const text of [
        '0x1.8p3',
        '1'.repeat(33),
        `0x${'d'.repeat(100_000)}`,
        '1'.repeat(100_000),
        '.',
        'e5',
      ]) {
        expect(readDouble(text)).toBeUndefined();
      }
    });

    example('skips long numbers in a list', () => {
      const long = [`0x${'d'.repeat(100_000)}`, '1'.repeat(100_000), `${' '.repeat(100_000)}x`];
      const read = parse(list(long.map((text) => `<location score="${text}" weight="${text}"/>`)));
      expect(read?.locations.map(({ score, weight }) => [score, weight])).toEqual([
        [0, 1],
        [0, 1],
        [0, 1],
      ]);
    });

    example('rejects a list with too many ranges, attributes, locations or bytes', () => {
      const ranges = (count: number): string => `<location addresses="${'1.2.3.4,'.repeat(count - 1)}::1"/>`;
      const attributes = (count: number): string =>
        `<location ${times(count, (at) => `a${at}=""`).join(' ')}/>`;
      const place = '<location href="https://e/"/>';
      for (const [within, beyond] of [
        [list([ranges(10_000)]), list([ranges(10_001)])],
        [list([ranges(5000), ranges(5000)]), list([ranges(5000), ranges(5001)])],
        [list([attributes(100)]), list([attributes(101)])],
        [list(times(10_000, () => place)), list(times(10_001, () => place))],
        [list([place]).padEnd(MIB), list([place]).padEnd(MIB + 1)],
      ] as const) {
        expect(parse(within)?.locations.length).toBeGreaterThan(0);
        expect(parse(beyond)).toBeUndefined();
      }
    });

    example('omits the lists of a record beyond 20,000 elements', () => {
      const texts = times(50, () => list(times(1000, () => '<location/>')));
      const lists = finish(listsIn([texts], parseLocationList));
      expect(lists.lists).toHaveLength(19);
      expect(countElements(lists)).toBeLessThanOrEqual(20_000);
    });

    example('counts each address range as an element', () => {
      const texts = times(50, () => list(['<location addresses="1.2.3.4,::1"/>', '<location/>'])).concat(
        times(50, () => list([`<location addresses="${'1.2.3.4,'.repeat(999)}::1"/>`])),
      );
      const lists = finish(listsIn([texts], parseLocationList));
      // 50 lists of 23 elements, then lists of 1,020.
      expect(lists.lists).toHaveLength(50 + 18);
      expect(countElements(lists)).toBe(50 * 23 + 18 * 1020);
    });

    example('truncates location XML at 1 MiB with a notice', () => {
      const { locations } = parse(list(times(9900, () => '<location href_template="{hdl}"/>')))!;
      const xml = finish(writeLocations(locations, 'ü'.repeat(1000)));
      expect(xml.length).toBeLessThan(MIB + 200);
      const shown = xml.match(/<location /g)!.length;
      expect(
        xml.endsWith(
          `<!-- ${9900 - shown} more locations are left out: at most 1 MiB is shown -->\n</locations>\n`,
        ),
      ).toBe(true);
      expect(parse(xml)?.locations).toHaveLength(shown);
    });

    example('stops Link headers after 8,000 characters', () => {
      const links = times(
        5000,
        (at) => `<location rel="a" href="https://e/${at}" anchor-id="${at + 1}" id="${at}"/>`,
      );
      const own = listsOf(parse(list(links))!);
      const { value: lines, steps } = countSteps(responseHeaders(alone(own), FORMS, []));
      // Only the first 200 links are processed, one step each.
      expect(steps).toBe(200);
      expect(lines.join('').length).toBeLessThan(8000 + lines.length);
      expect(lines[0]).toEqual(['Link', '<https://e/0>; anchor="https://e/1"; rel="a"']);
    });
  });

  describe('record headers', () => {
    example('include at most 200 allowed lines, and reject others in steps', () => {
      const headersOf = (text: string) => {
        const own = { lists: [], links: [], headers: [text] };
        return countSteps(responseHeaders(alone(own), FORMS, ['link']));
      };
      const short = headersOf(times(20_000, () => 'Link: <>\n').join(''));
      expect(short.value).toHaveLength(200);
      expect(short.steps).toBeLessThan(10);
      const refused = headersOf(times(20_000, () => 'X: y\r\n').join(''));
      expect(refused.value).toEqual([]);
      expect(refused.steps).toBeGreaterThan(100);
    });
  });

  const pieces = ['&amp;', '&', '&#x10ffff;', '&#38;', '😀', '\ud83d', 'x', '"', '&am', 'p;'];
  test.prop([fc.nat(10), fc.array(fc.constantFrom(...pieces), { minLength: 20 })], {
    numRuns: rounds(100),
  })('reads and writes a long attribute identically in slices', (before, parts) => {
    const text = '.'.repeat(before) + parts.join('').repeat(500);
    const read = (given: string): string =>
      parse(`<l><location href='${given}'/></l>`)!.locations[0]!.attributes.get('href')!;
    const known: Record<string, string> = { amp: '&', '#x10ffff': '\u{10ffff}', '#38': '&' };
    expect(read(text)).toBe(text.replace(/&(amp|#x10ffff|#38);/g, (_whole, name: string) => known[name]!));
    const shown = finish(writeLocations([partial({ attributes: new Map([['href', text]]) })], 'h'));
    const written = /href="([^"]*)"/.exec(shown)?.[1] ?? '';
    expect(written.replace(/&#(\d+);/g, (_whole, code: string) => String.fromCharCode(Number(code)))).toBe(
      Buffer.from(text).toString(),
    );
  });
});

example.each([0, 1])(
  'location XML keeps surrogate pairs together when written in pieces (offset %i)',
  (before) => {
    const text = '.'.repeat(before) + '😀'.repeat(10_000);
    expect(finish(writeLocations([partial({ attributes: new Map([['href', text]]) })], 'h'))).toContain(
      `"${text}"`,
    );
  },
);

example('location lookup by attribute reads no location', () => {
  const made = counted(parse(list(times(1000, (at) => `<location id="${at}" role=""/>`)))!);
  const { mayHave } = finish(candidatesOf(alone(listsOf(made)), []));
  Counting.reads = 0;
  const wanted = [
    ['id', '7'],
    ['id', 'x'],
    ['role', ''],
    ['role', undefined],
    ['none', undefined],
  ] as const;
  expect(wanted.map(([name, text]) => mayHave(name, text))).toEqual([true, false, true, true, false]);
  expect(Counting.reads).toBe(0);
});
