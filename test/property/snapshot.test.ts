// Written records are restored, and corrupted bytes restore no record that was not written.
import { deflateRawSync } from 'node:zlib';
import { fc, test } from '../support/property.js';
import { describe, expect } from 'vitest';
import type { Entry, KeyedEntry } from '../../src/cache/entry.js';
import {
  ContentBuffer,
  END,
  type SnapshotPart,
  type Take,
  encodeBlock,
  encodeHead,
  readSnapshot,
} from '../../src/plugins/snapshot/format.js';
import { toBytes } from '../../src/handle/bytes.js';
import { texts } from '../support/arbitraries.js';
import { rounds } from '../support/property-rounds.js';

const IDENTITY = 'http://handle.example.org:8000';
const times = fc.integer({ min: 0, max: 4e12 });
const entry: fc.Arbitrary<Entry> = fc.record({
  kind: fc.constantFrom('found', 'empty', 'not-found'),
  values: texts.map((text) => toBytes(text)),
  message: texts.map((text) => Buffer.from(text).toString()),
  requestedAt: times,
  staleAt: times,
  deleteAt: times,
});
const key = texts.map((text) => Buffer.from(text).toString());
const blocks = fc.array(fc.array(fc.record({ key, entry }), { minLength: 1, maxLength: 4 }), {
  maxLength: 4,
});

function bytesOf(written: KeyedEntry[][], identity = IDENTITY): Buffer {
  const encoded = written.map((entries) => {
    const buffer = new ContentBuffer();
    for (const kept of entries) buffer.add(kept);
    const content = buffer.take();
    return encodeBlock(deflateRawSync(content), content.length);
  });
  return Buffer.concat([encodeHead(identity), ...encoded, END]);
}

async function read(bytes: Buffer): Promise<SnapshotPart[]> {
  let at = 0;
  const take: Take = (length) => Promise.resolve(bytes.subarray(at, (at += length)));
  const parts: SnapshotPart[] = [];
  for await (const part of readSnapshot(take, IDENTITY)) parts.push(part);
  return parts;
}

const entriesOf = (parts: SnapshotPart[]): KeyedEntry[] =>
  parts.flatMap((part) => ('entries' in part ? part.entries : []));
const rejectionsOf = (parts: SnapshotPart[]): string[] =>
  parts.flatMap((part) => ('rejected' in part ? [part.rejected] : []));

describe('snapshot', () => {
  test.prop([blocks])('is restored as written', async (written) => {
    const parts = await read(bytesOf(written));
    expect(entriesOf(parts)).toEqual(written.flat());
    expect(rejectionsOf(parts)).toEqual([]);
  });

  test.prop([blocks, fc.nat()])('is restored up to a truncation, then rejected', async (written, cut) => {
    const bytes = bytesOf(written);
    const parts = await read(bytes.subarray(0, cut % bytes.length));
    expect(written.flat().slice(0, entriesOf(parts).length)).toEqual(entriesOf(parts));
    expect(rejectionsOf(parts)).toHaveLength(1);
  });

  test.prop([blocks, fc.nat(), fc.integer({ min: 1, max: 255 })])(
    'is rejected in part after a byte change, and yields only written entries',
    async (written, place, change) => {
      const bytes = bytesOf(written);
      const at = place % bytes.length;
      bytes.writeUInt8(bytes.readUInt8(at) ^ change, at);
      const parts = await read(bytes);
      expect(rejectionsOf(parts)).toHaveLength(1);
      for (const found of entriesOf(parts)) expect(written.flat()).toContainEqual(found);
    },
  );

  test.prop([blocks, fc.array(fc.tuple(fc.nat(), fc.uint8Array({ maxLength: 40 })), { maxLength: 5 })], {
    numRuns: rounds(2000),
  })(
    'yields no record that it did not contain, even after parts were overwritten',
    async (written, damages) => {
      const bytes = bytesOf(written);
      for (const [place, noise] of damages)
        bytes.set(noise.subarray(0, bytes.length - (place % bytes.length)), place % bytes.length);
      for (const found of entriesOf(await read(bytes))) expect(written.flat()).toContainEqual(found);
    },
  );

  test.prop([fc.uint8Array({ maxLength: 300 })])(
    'is rejected if it consists of random bytes',
    async (noise) => {
      expect(await read(Buffer.from(noise))).toEqual([{ rejected: 'unknown' }]);
    },
  );

  test.prop([blocks])('is rejected for a different upstream', async (written) => {
    expect(await read(bytesOf(written, 'http://other.example.org:8000'))).toEqual([{ rejected: 'foreign' }]);
  });

  test('is rejected for a later version', async () => {
    const bytes = bytesOf([]);
    bytes.write('HRPSNAP9', 'latin1');
    expect(await read(bytes)).toEqual([{ rejected: 'unknown' }]);
  });

  test('is rejected when a block inflates to more bytes than it declares', async () => {
    const bomb = deflateRawSync(Buffer.alloc(1024 ** 2));
    const bytes = Buffer.concat([encodeHead(IDENTITY), encodeBlock(bomb, 10), END]);
    expect(await read(bytes)).toEqual([{ rejected: 'damaged' }]);
  });

  describe('of one forged block', () => {
    const keptOf = (at: number, values: string): KeyedEntry => ({
      key: `21.T1/${at}`,
      entry: { kind: 'found', values: toBytes(values), message: '', requestedAt: 1, staleAt: 2, deleteAt: 3 },
    });
    const blockOf = (count: number, values: string): KeyedEntry[] =>
      Array.from({ length: count }, (_, at) => keptOf(at, values));

    test.each([
      ['1,001 short records', blockOf(1001, '[]'), 6],
      ['records of 100 KiB', blockOf(10, 'x'.repeat(100 * 1024)), 4],
    ])('is decoded in several turns of the event loop: %s', async (_, block, turns) => {
      const parts = await read(bytesOf([block]));
      expect(entriesOf(parts)).toEqual(block);
      expect(parts).toHaveLength(turns);
    });

    test('is not read if it has more than 8 MiB, nor what follows it', async () => {
      const bytes = bytesOf([blockOf(1, '[]')]);
      const head = encodeHead(IDENTITY);
      const content = Buffer.alloc(8 * 2 ** 20 + 1);
      const forged = encodeBlock(deflateRawSync(content), content.length);
      const parts = await read(Buffer.concat([head, forged, bytes.subarray(head.length)]));
      expect(parts).toEqual([{ rejected: 'damaged' }]);
    });
  });
});
