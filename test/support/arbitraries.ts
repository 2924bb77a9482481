// Generates random Handle server records and random queries.
import fc from 'fast-check';
import type { HandleValue } from '../../src/handle/value.js';
import { unicodeTexts } from './code-points.js';

const TYPES = ['URL', 'url', 'URL.MIRROR', 'URL.', 'EMAIL', 'DESC', '10320/loc', 'HS_ADMIN', 'Ünicode', ''];

export const texts = unicodeTexts({ maxLength: 40 });

export const values: fc.Arbitrary<HandleValue> = fc
  .record({
    index: fc.integer({ min: 1, max: 12 }),
    type: fc.constantFrom(...TYPES),
    data: fc.record({ format: fc.constant('string'), value: texts }),
    permissions: fc.option(fc.constantFrom('1110', '1100', '0110', '1111', '0000'), { nil: undefined }),
    ttl: fc.oneof(
      fc.integer({ min: -10, max: 200_000 }),
      fc.constantFrom('2030-01-02T03:04:05Z', '1970-01-01T00:00:00Z'),
    ),
    timestamp: fc.constant('2026-11-21T09:29:42Z'),
  })
  .map(({ permissions, ...value }) => (permissions === undefined ? value : { ...value, permissions }));

export const records = fc.uniqueArray(values, { selector: ({ index }) => index, maxLength: 8 });

export const selections = fc.record({
  indexes: fc.array(fc.integer({ min: 0, max: 14 }), { maxLength: 3 }),
  types: fc.array(fc.constantFrom(...TYPES, 'email', 'URL.MIRROR.', 'NOSUCH'), { maxLength: 3 }),
});

export const noise = unicodeTexts({ maxLength: 30 });
const pieces = fc.constantFrom(
  ...[
    'http',
    'https',
    'ftp',
    'mailto',
    'javascript',
    ':',
    '//',
    '/',
    '\\',
    '@',
    '?',
    '#',
    '%',
    '%41',
    '%zz',
    '.',
    '[',
  ],
  ...[
    ']',
    '::1',
    ':80',
    ' ',
    '\t',
    '\r\n',
    '\0',
    '"',
    '<',
    '>',
    'example.org',
    'evil.org',
    'bücher.example',
    '漢',
    '。',
  ],
  ...['\ud800', '😀', '\u2028', '\u202e', 'xn--', 'a'.repeat(300)],
);
/** Pieces of URLs and markup in random order. */
export const jumble = fc
  .array(fc.oneof({ weight: 5, arbitrary: pieces }, noise), { maxLength: 12 })
  .map((some) => some.join(''));
