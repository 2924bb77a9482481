// Any text is accepted as a location list, and any request selects a location or none.
import { validateHeaderValue } from 'node:http';
import { fc, test } from '../support/property.js';
import { describe, expect } from 'vitest';
import { escapeText } from '../../src/html/html.js';
import { isInRanges, readAddress } from '../../src/plugins/locations/addresses.js';
import {
  candidatesOf,
  negotiatedAttributes,
  readChooseBy,
  selectLocation,
} from '../../src/plugins/locations/select.js';
import { type LocationList, parseLocationList } from '../../src/plugins/locations/location-list.js';
import { responseHeaders, writeLocations } from '../../src/plugins/locations/target.js';
import { templateForms } from '../../src/plugins/locations/template.js';
import { jumble, noise, values } from '../support/arbitraries.js';
import { finish } from '../support/steps.js';
import { rounds } from '../support/property-rounds.js';

const names = fc.stringMatching(/^[a-z][a-z0-9_.-]{0,8}$/);
const xmlText = fc.string({ unit: 'grapheme-ascii', maxLength: 20 });
const attributes = fc
  .dictionary(
    names,
    fc.oneof(xmlText, fc.constantFrom('0', '1', '-1', '1e400', 'us', 'conneg', '\n', 'ä漢😀')),
    { maxKeys: 5 },
  )
  .map((some) => ({ ...some, href: 'https://example.org/' }));
const write = (places: Record<string, string>[]): string =>
  `<locations>${places
    .map(
      (place) =>
        `<location ${Object.entries(place)
          .map(([name, text]) => `${name}="${escapeText(text)}"`)
          .join(' ')}/>`,
    )
    .join('')}</locations>`;

const gathered = (lists: LocationList[]) => ({
  own: { lists, links: [], headers: [] },
  included: [],
  prefix: [],
  prefixIncluded: [],
});

describe('location list properties', () => {
  describe('location list', () => {
    test.prop([
      fc.oneof(
        noise,
        jumble,
        fc.string({ unit: fc.constantFrom(...'<>/="\'&;! locationshref'.split(/(?=.)/)) }),
      ),
    ])('is parsed or skipped without throwing', (xml) => {
      for (const text of [
        xml,
        `<locations>${xml}</locations>`,
        `<locations><location href="${xml}"/></locations>`,
      ]) {
        finish(parseLocationList(text));
      }
    });

    test.prop([fc.array(attributes, { minLength: 1, maxLength: 6 })])(
      'contains every attribute and no negative weight',
      (places) => {
        const read = finish(parseLocationList(write(places)))!;
        expect(read.locations.map(({ attributes: each }) => Object.fromEntries(each))).toEqual(places);
        for (const { weight } of read.locations) expect(weight).toBeGreaterThanOrEqual(0);
      },
    );

    test.prop([fc.array(attributes, { minLength: 1, maxLength: 6 }), fc.array(values, { maxLength: 4 })])(
      'has the same meaning after serialization and parsing',
      (places, others) => {
        const list = finish(parseLocationList(write(places)))!;
        const plain = others.filter(({ type }) => !/^10320\//.test(type));
        const { locations } = finish(candidatesOf(gathered([list]), plain));
        const again = finish(parseLocationList(finish(writeLocations(locations, 'h'))))!;
        expect(again.locations.slice(0, places.length)).toEqual(list.locations);
        const urls = plain.filter(({ type }) => /^url(\.|$)/i.test(type));
        expect(again.locations).toHaveLength(places.length + urls.length);
      },
    );

    test.prop([fc.array(attributes, { maxLength: 6 })])('produces valid Link headers', (places) => {
      const linked = places.map((place) => ({
        ...place,
        rel: new Map(Object.entries(place)).get('rel') ?? 'item',
      }));
      const list = finish(parseLocationList(write(linked)))!;
      for (const [name, line] of finish(responseHeaders(gathered([list]), templateForms('h'), []))) {
        validateHeaderValue(name, line);
        expect(line).toMatch(/^<https:\/\/example\.org\/>(?:; [a-z-]+\*?=(?:"(?:[^"\\]|\\.)*"|[!-~]*))*$/);
      }
    });
  });

  const scored = fc
    .record(
      {
        id: fc.constantFrom('a', 'b'),
        country: fc.constantFrom('us', ' DE ', 'fr'),
        addresses: fc.constantFrom('192.0.2.0/24', '::1, 192.0.2.1', '', 'x'),
        score: fc.constantFrom('-1', '-0.5', '0', '1', '2', 'x', 'NaN'),
        weight: fc.constantFrom('0', '1', '3', '-1', 'x', 'NaN', 'Infinity'),
      },
      { requiredKeys: [] },
    )
    .map((some) => Object.fromEntries(Object.entries(some)) as Record<string, string>);
  const facts = fc.record({
    attributes: fc.array(
      fc.record({
        name: fc.constantFrom('id', 'country', 'none'),
        value: fc.option(fc.constantFrom('a', 'b', 'us'), { nil: undefined }),
        by: fc.constantFrom('locatt' as const, 'accept' as const),
      }),
      { maxLength: 3 },
    ),
    country: fc.option(fc.constantFrom('us', 'DE', '', 'xx'), { nil: undefined }),
    address: fc.constantFrom('192.0.2.1', '::ffff:192.0.2.1', '::1', 'garbage', ''),
    random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  });
  const chains = fc.array(fc.constantFrom('locatt', 'country', 'weighted', 'address', 'score', 'x', ''), {
    maxLength: 5,
  });

  describe('location selection', () => {
    const choose = (...given: Parameters<typeof selectLocation>) => finish(selectLocation(...given));
    const locationsOf = (places: Record<string, string>[]) =>
      finish(parseLocationList(write(places)))!.locations;

    test.prop([fc.array(scored, { maxLength: 6 }), chains, facts], { numRuns: rounds(2000) })(
      'is deterministic for the same inputs, and random only among several locations',
      (places, chain, fact) => {
        const locations = locationsOf(places);
        const chooseBy = readChooseBy(chain.join(','));
        const choice = choose(locations, chooseBy, fact);
        expect(choose(locations, chooseBy, fact)).toEqual(choice);
        if (choice === undefined) {
          const isBelow = ({ attributes: each }: (typeof locations)[number]): boolean =>
            Number(each.get('score')) < 0;
          expect(locations.length === 0 || (chooseBy.includes('score') && locations.some(isBelow))).toBe(
            true,
          );
          return;
        }
        expect(locations).toContain(choice.location);
        if (choice.isRandom) expect(locations.length).toBeGreaterThan(1);
        else expect(choose(locations, chooseBy, { ...fact, random: 0.99 })).toEqual(choice);
      },
    );

    test.prop([scored, chains, facts])('selects the only location', (place, chain, fact) => {
      const [only] = locationsOf([place]);
      expect(choose([only!], readChooseBy(chain.join(',')), fact)?.location).toBe(only);
    });

    test.prop([fc.array(scored, { minLength: 2, maxLength: 6 }), facts])(
      'applies the address selector before the score selector',
      (places, fact) => {
        const locations = locationsOf(places);
        const first = choose(locations, ['address'], fact)!;
        const near = locations.filter(({ addresses = [] }) =>
          isInRanges(readAddress(fact.address) ?? -1n, addresses),
        );
        if (near.length > 0) expect(near).toContain(first.location);
        const both = choose(locations, ['address', 'score'], fact);
        if (near.length === 1) expect(both?.location).toBe(near[0]);
        if (near.length > 1 && both) expect(near).toContain(both.location);
      },
    );
  });

  describe('content negotiation', () => {
    test.prop([fc.oneof(noise, jumble), fc.oneof(noise, jumble), noise])(
      'accepts any header',
      (accept, acceptLanguage, userAgent) => {
        for (const wantsMetadata of [true, false]) {
          const wanted = negotiatedAttributes({ accept, acceptLanguage, userAgent }, wantsMetadata);
          expect(wanted.length).toBeLessThanOrEqual(160);
          for (const { name } of wanted) {
            expect(['role', 'http_role', 'ctype', 'media-type', 'language']).toContain(name);
          }
        }
      },
    );
  });
});
