import { fc, test } from '../support/property.js';
import { describe, expect } from 'vitest';
import { type Entry, RUN_LENGTH, decodeEntry, encodeEntry, originOf } from '../../src/cache/entry.js';
import { toBytes } from '../../src/handle/bytes.js';
import { records, texts } from '../support/arbitraries.js';

const times = fc.integer({ min: 0, max: 4e12 });
const entries: fc.Arbitrary<Entry> = fc
  .record({
    kind: fc.constantFrom('found', 'empty', 'not-found'),
    values: records.map((values) => toBytes(JSON.stringify(values))),
    message: texts.map((text) => Buffer.from(text).toString()),
    requestedAt: times,
    staleAt: times,
    deleteAt: times,
  })
  .map((entry) => (entry.kind === 'found' ? entry : { ...entry, values: toBytes('') }));
const keys = texts.map((text) => Buffer.from(text).toString());

const DEEP = '['.repeat(2000) + ']'.repeat(2000);

describe('encoded cache entry', () => {
  test.prop([keys, entries])('decodes to the same entry', (key, entry) => {
    expect(decodeEntry(key, encodeEntry(key, entry))).toEqual(entry);
  });

  test.prop([
    keys,
    entries,
    fc.record({ run: fc.stringMatching(new RegExp(`^[0-9a-f]{${RUN_LENGTH}}$`)), ban: fc.maxSafeNat() }),
  ])('preserves the run and the ban number of its load', (key, entry, origin) => {
    const bytes = encodeEntry(key, entry, origin);
    expect(originOf(bytes)).toEqual(origin);
    expect(decodeEntry(key, bytes)).toEqual(entry);
  });

  test.prop([keys, entries, keys])('is a miss for a different key', (key, entry, other) => {
    fc.pre(key !== other);
    expect(decodeEntry(other, encodeEntry(key, entry))).toBeUndefined();
  });

  test.prop([keys, entries, fc.nat()])('is a miss when truncated', (key, entry, cut) => {
    const bytes = encodeEntry(key, entry);
    expect(decodeEntry(key, bytes.subarray(0, cut % bytes.length))).toBeUndefined();
  });

  test.prop([keys, entries, fc.nat({ max: 255 }).filter((version) => version !== 5)])(
    'is a miss for a different version',
    (key, entry, version) => {
      const bytes = encodeEntry(key, entry);
      bytes.writeUInt8(version, 3);
      expect(decodeEntry(key, bytes)).toBeUndefined();
    },
  );

  test.prop([keys, entries, fc.nat(), fc.integer({ min: 1, max: 255 })])(
    'is a miss after a byte change',
    (key, entry, place, change) => {
      const bytes = encodeEntry(key, entry);
      const at = place % bytes.length;
      const before = bytes.readUInt8(at);
      bytes.writeUInt8(before ^ change, at);
      // This change marks the entry stale-only, which is safe.
      fc.pre(at !== 4 || (before ^ change) !== before + 3);
      expect(decodeEntry(key, bytes)).toBeUndefined();
    },
  );

  // A program with access to Redis can forge the checksum too.
  test.each<[what: string, forged: Partial<Entry>]>([
    ['a time that is not a number', { requestedAt: NaN }],
    ['an endless time', { staleAt: Infinity }],
    ['a time after the last date', { deleteAt: 8.64e15 + 1 }],
    ['a negative time', { requestedAt: -1 }],
    ['truncated JSON', { values: toBytes('[{"index":1') }],
    ['a JSON object', { values: toBytes('{"index":1}') }],
    ['no values', { values: toBytes('') }],
    ['values that are not objects', { values: toBytes('[null,1,"x"]') }],
    ['values without members', { values: toBytes('[{}]') }],
    ['permissions that are not a text', { values: toBytes('[{"index":1,"type":"URL","permissions":{}}]') }],
    ['a TTL that is an object', { values: toBytes('[{"index":1,"type":"URL","ttl":{}}]') }],
    ['JSON nested too deep', { values: toBytes(`[{"index":1,"type":"A","data":${DEEP}}]`) }],
    ['values of a handle that does not exist', { kind: 'not-found' }],
    ['values of an empty record', { kind: 'empty' }],
  ])('is a miss with %s', (_what, forged) => {
    const entry: Entry = {
      kind: 'found',
      values: toBytes('[{"index":1,"type":"URL","data":{"format":"string","value":"x"},"ttl":60}]'),
      message: '',
      requestedAt: 1,
      staleAt: 2,
      deleteAt: 3,
    };
    expect(decodeEntry('A', encodeEntry('A', entry))).toEqual(entry);
    expect(decodeEntry('A', encodeEntry('A', { ...entry, ...forged }))).toBeUndefined();
  });

  test.prop([keys, fc.uint8Array({ maxLength: 200 })])('is not decoded from random bytes', (key, noise) => {
    expect(decodeEntry(key, Buffer.from(noise))).toBeUndefined();
  });
});
