// The phrase codec of the memory tier.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compress, expand } from '../../../src/cache/memory/phrase-codec.js';
import { type Bytes, toBytes } from '../../../src/handle/bytes.js';
import { handleServerRecordings } from '../../support/recordings.js';
import { rounds } from '../../support/property-rounds.js';
import { unicodeTexts } from '../../support/code-points.js';

/** Public values in recorded Handle.Net responses, in the form that the cache stores. */
const recordedValues = handleServerRecordings
  .map(({ response }) => /^\{"responseCode":1,.*?"values":(\[.*\])\}$/s.exec(String(response.body))?.[1])
  .filter((values) => values !== undefined)
  .map((values) => toBytes(values));

/** Byte strings that mix record fragments, control characters and non-ASCII bytes. */
const byteStrings = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '"},"ttl":86400,"timestamp":"20',
        ',"timestamp":"20',
        '26-11-28T13:59:00',
        '99-99-99T99:99:99',
        'Z"},{"index":',
        ',"type":"',
        'https://',
        '\0',
        '\x01',
        '\n',
      ),
      unicodeTexts().map(toBytes),
    ),
  )
  .map((pieces) => pieces.join('') as Bytes);

describe('phrase codec of the memory tier', () => {
  it('returns every byte string that it has compressed', () => {
    fc.assert(
      fc.property(byteStrings, (text) => {
        expect(expand(compress(text))).toBe(text);
      }),
      { numRuns: rounds(2000) },
    );
  });

  it('stores Handle.Net records in less than a third of their size', () => {
    expect(recordedValues.length).toBeGreaterThan(20);
    const sum = (texts: Bytes[]): number => texts.reduce((total, text) => total + text.length, 0);
    expect(sum(recordedValues.map(compress))).toBeLessThan(sum(recordedValues) / 3);
    expect(recordedValues.map((values) => expand(compress(values)))).toEqual(recordedValues);
  });

  it('adds at most one byte to a text', () => {
    fc.assert(
      fc.property(byteStrings, (text) => {
        expect(compress(text).length).toBeLessThanOrEqual(text.length + 1);
      }),
    );
  });
});
