// FAIR Signposting of any record has valid headers, the same links in each format, and a linear cost.
import { validateHeaderValue } from 'node:http';
import { fc, test } from '../support/property.js';
import LinkHeader from 'http-link-header';
import { describe, expect, it } from 'vitest';
import type { HandleValue } from '../../src/handle/value.js';
import type { RecordLinks } from '../../src/redirect/extension.js';
import { LINKSET_JSON, LINKSET_TEXT } from '../../src/redirect/request.js';
import { createSignposting } from '../../src/plugins/signposting/signposting.js';
import { jumble, texts } from '../support/arbitraries.js';
import { configFrom } from '../support/load-config.js';
import { countSteps, finish } from '../support/steps.js';
import { rounds } from '../support/property-rounds.js';

const RELATIONS = ['type', 'author', 'license', 'describedby', 'describes', 'item', 'collection', 'profile'];
const signposting = createSignposting(
  configFrom({
    env: {
      SIGNPOSTING_PUBLIC_URL: 'https://pid.example.org',
      SIGNPOSTING_TYPES: RELATIONS.map((relation) => `T.${relation}=${relation}`).join(','),
    },
  }),
);

const valueOf = (index: number, type: string, text: string): HandleValue => ({
  index,
  type,
  data: { format: 'string', value: text },
});

const typedTexts = fc.oneof(
  jumble,
  texts,
  fc.webUrl({ withQueryParameters: true, withFragments: true }),
  jumble.map((text) => `https://example.org/${text}`),
  jumble.map((text) => `21.T1/${text}`),
  fc.constantFrom('text/csv', 'https://spdx.org/licenses/MIT.html'),
);
const records = fc.array(fc.tuple(fc.constantFrom(...RELATIONS), typedTexts), { maxLength: 30 });
const targets = fc.option(fc.webUrl(), { nil: undefined });
const handles = fc.oneof(
  jumble.map((text) => `21.T1/${text}`),
  fc.constant('10.5072/a'),
);

const signpostsOf = (record: [string, string][], handle: string, target: string | undefined) =>
  finish(
    signposting(
      record.map(([relation, text], at) => valueOf(at + 1, `t.${relation}`, text)),
      { handle, target, headers: [] },
    ),
  ) as Required<RecordLinks>;

const parse = (text: string) => LinkHeader.parse(text).refs;

describe('signposting of any record', () => {
  test.prop([records, handles, targets], { numRuns: rounds(500) })(
    'is a valid Link header with absolute http(s) URLs',
    (record, handle, target) => {
      const { onRedirect, onPage } = signpostsOf(record, handle, target);
      for (const [name, line] of [...onRedirect(), ...onPage()]) {
        validateHeaderValue(name, line);
        expect(line.length).toBeLessThanOrEqual(4000);
        for (const { uri, rel } of parse(line)) {
          expect(uri).toMatch(/^https?:\/\/[\x21-\x7e]+$/i);
          expect(URL.canParse(uri)).toBe(true);
          expect([...RELATIONS, 'cite-as', 'linkset']).toContain(rel);
        }
      }
    },
  );

  test.prop([records, handles, targets], { numRuns: rounds(500) })(
    'contains the same links in both formats of a link set',
    (record, handle, target) => {
      const { linkset } = signpostsOf(record, handle, target);
      const written = JSON.parse(linkset(LINKSET_JSON)) as {
        linkset: ({ anchor: string } & Record<
          string,
          { href: string; type?: string; profile?: string[] }[]
        >)[];
      };
      const inJson = written.linkset.flatMap(({ anchor, ...relations }) =>
        Object.entries(relations).flatMap(([rel, links]) =>
          links.map(({ href, profile, ...link }) => ({
            uri: href,
            rel,
            ...link,
            ...(profile !== undefined && { profile: profile[0] }),
            anchor,
          })),
        ),
      );
      const order = (links: object[]): string[] => links.map((link) => JSON.stringify(link)).sort();
      expect(order(parse(linkset(LINKSET_TEXT)))).toEqual(order(inJson));
      const landing = inJson.filter(({ anchor }) => anchor === inJson[0]?.anchor);
      expect(landing.filter(({ rel }) => rel === 'cite-as')).toHaveLength(1);
      expect(landing.filter(({ rel }) => rel === 'license').length).toBeLessThanOrEqual(1);
    },
  );

  it('requires at most twice the steps for twice the values, and reads none after the maximum number of links', () => {
    let reads = 0;
    const stepsFor = (count: number, text: string): number => {
      reads = 0;
      const values = Array.from({ length: count }, (_, at) => ({
        ...valueOf(at + 1, 'T.item', text),
        get type() {
          reads++;
          return 'T.item';
        },
      }));
      return countSteps(signposting(values, { handle: '21.T1/a', target: undefined, headers: [] })).steps;
    };
    expect(stepsFor(20_000, 'no link')).toBeLessThanOrEqual(2 * stepsFor(10_000, 'no link'));
    expect(reads).toBe(10_000);
    stepsFor(20_000, 'https://example.org/');
    expect(reads).toBe(100);
  });
});
