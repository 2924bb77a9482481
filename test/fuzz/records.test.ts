// Records from a grammar with mutated structure: no code throws, and the number of work steps is bounded by
// the record length. `npm run fuzz` generates far more records.
import { valuesTable } from '../../src/plugins/pages/record-page.js';
import { describe, expect, test, vi } from 'vitest';
import { textValue } from '../../src/dev-server/seed.js';
import type { HandleValue } from '../../src/handle/value.js';
import { TYPES, createLocationListParser, listsIn } from '../../src/plugins/locations/location-list.js';
import { namespaceIn } from '../../src/plugins/locations/other-records.js';
import { readRedirectQuery } from '../../src/redirect/request.js';
import { textsOf } from '../../src/redirect/values.js';
import { findTarget, writeLocations } from '../../src/plugins/locations/target.js';
import { renderEtag } from '../../src/v2/read.js';
import { countSteps } from '../support/steps.js';
import { type Random, randomFrom } from '../support/random.js';
import { below, pick } from './mutate.js';

const COUNT = Number(process.env['FUZZ_RECORDS'] ?? 100);
const SEED = Number(process.env['FUZZ_SEED'] ?? 1);
vi.setConfig({ testTimeout: 180_000 + COUNT * 400 });

interface Element {
  name: string;
  attributes: [name: string, value: string][];
  children: (Element | string)[];
}

const NAMES = [
  'location',
  'loc_template',
  'locations',
  'LOCATION',
  'locs',
  'status',
  'statusmsg',
  'contact',
  'x',
];
const ATTRIBUTES = [
  ...[
    'href',
    'weight',
    'score',
    'country',
    'addresses',
    'rel',
    'id',
    'anchor-id',
    'http_role',
    'http_sc',
    'type',
  ],
  ...['href_template', 'chooseby', 'include', 'includeNamespace', 'overridePrefix', 'no_nslocs', 'language'],
];
const TEXTS = [
  ...[
    '',
    '0',
    '1',
    '-1',
    '1e999',
    '0x1p3',
    'NaN',
    'yes',
    'de',
    'https://example.org/{hdl}',
    '{hdl}{hdl_url}',
  ],
  ...[
    '10.0.0.0/8',
    '::/0',
    '10.0.0.1-10.0.0.9',
    'country,weighted',
    '21.T11998/x',
    '&amp;&#38;&#x110000;',
    'inactive',
  ],
  ...['<script>', ']]>', '<!--', '\\"', '\u{1f600}', '%00%', ';', ',,,,'],
];

const text = (random: Random): string => {
  const piece = pick(random, TEXTS);
  return random() < 0.2 ? piece.repeat(1 + below(random, 200)) : piece;
};

const element = (random: Random, depth: number): Element => ({
  name: pick(random, NAMES),
  attributes: Array.from({ length: below(random, 5) }, () => [pick(random, ATTRIBUTES), text(random)]),
  children: Array.from({ length: depth === 0 ? 0 : below(random, 6) }, () =>
    random() < 0.8 ? element(random, depth - 1) : text(random),
  ),
});

/** Repeats, nests, moves or drops a part of the element. */
function mutateElement(random: Random, given: Element): Element {
  const { name, attributes, children } = given;
  const [child] = children.slice(below(random, Math.max(1, children.length)));
  switch (below(random, 5)) {
    case 0:
      return {
        name,
        attributes,
        children: Array<Element | string>(below(random, 150)).fill(child ?? given),
      };
    case 1:
      return { name: 'locations', attributes: [], children: [given, ...children] };
    case 2:
      return {
        name,
        attributes: Array<[string, string]>(below(random, 120)).fill(['a', text(random)]),
        children,
      };
    case 3:
      return { name, attributes: [...attributes, ...attributes], children: children.toReversed() };
    default:
      return { name, attributes, children: children.slice(1) };
  }
}

const write = (part: Element | string): string =>
  typeof part === 'string'
    ? part
    : `<${part.name} ${part.attributes.map(([name, value]) => `${name}="${value}"`).join(' ')}>` +
      `${part.children.map(write).join('')}</${part.name}>`;

const site = (random: Random): unknown => ({
  version: pick(random, [1, -1, '1', null]),
  servers: Array.from({ length: below(random, 12) }, () => ({
    address: text(random),
    interfaces: Array.from({ length: below(random, 12) }, () => ({
      protocol: text(random),
      port: below(random, 70_000),
    })),
  })),
});

function value(random: Random, index: number): HandleValue {
  const list = (): string => {
    let made = element(random, 3);
    for (let changes = below(random, 3); changes > 0; changes--) made = mutateElement(random, made);
    return write(made);
  };
  const make = pick(random, [
    () => textValue(index, '10320/loc', list()),
    () => textValue(index, '10320/links', list()),
    () => textValue(index, '10320/headers', `Link: ${text(random)}\n`.repeat(below(random, 100))),
    () => textValue(index, 'HS_NAMESPACE', list()),
    () => textValue(index, 'HS_ALIAS', text(random)),
    () => textValue(index, 'URL', text(random)),
    () => textValue(index, 'DESC', list()),
    () => ({ index, type: 'HS_SITE', data: { format: 'site', value: site(random) } }),
  ]);
  return make() as unknown as HandleValue;
}

/** Returns the steps of all sliced work on the record. */
function stepsOn(values: readonly HandleValue[]): number {
  const own = countSteps(listsIn(textsOf(values, TYPES), createLocationListParser()));
  const gathered = { own: own.value, included: [], prefix: [], prefixIncluded: [] };
  const headers = { accept: 'a/b', acceptLanguage: 'de', userAgent: undefined };
  const client = { address: '10.0.0.1', countryOf: undefined, random: 0.5 };
  const query = readRedirectQuery(new URLSearchParams('locatt=country:de'));
  const target = countSteps(
    findTarget({ handle: '21.T11998/x', values, query, headers, ...client }, gathered, ['link']),
  );
  const shown = countSteps(
    writeLocations(
      own.value.lists.flatMap(({ locations }) => locations),
      '21.T11998/x',
    ),
  );
  namespaceIn(values);
  const page = countSteps(valuesTable(values, '/'));
  return own.steps + target.steps + shown.steps + page.steps + countSteps(renderEtag(values, [])).steps;
}

describe('work on fuzzed records', () => {
  test(`is bounded by the record length for ${COUNT} hostile records`, () => {
    for (let seed = SEED * 1_000_000; seed < SEED * 1_000_000 + COUNT; seed++) {
      const random = randomFrom(seed);
      const values = Array.from({ length: 1 + below(random, 8) }, (_, at) => value(random, at + 1));
      const chars = JSON.stringify(values).length;
      expect(stepsOn(values), `seed ${seed}, ${chars} characters`).toBeLessThanOrEqual(100 + chars / 4);
    }
  });
});
