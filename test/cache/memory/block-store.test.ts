// Text storage in blocks outside the V8 heap.
import { fc, test } from '../../support/property.js';
import { describe, expect } from 'vitest';
import { BLOCK_BYTES, BlockStore } from '../../../src/cache/memory/block-store.js';
import type { Bytes } from '../../../src/handle/bytes.js';

const bytesOf = (length: number, seed: number): Bytes =>
  Buffer.from(Array.from({ length }, (_, at) => (at * 31 + seed) % 256)).toString('latin1') as Bytes;

const lengths = fc.oneof(
  fc.integer({ min: -1, max: 1 }).map((beside) => 2 * BLOCK_BYTES + beside),
  fc.integer({ min: 0, max: 3000 }),
);
const acts = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('keep' as const), length: lengths, seed: fc.nat({ max: 255 }) }),
    fc.record({ kind: fc.constant('drop' as const), nth: fc.nat() }),
  ),
  { maxLength: 200 },
);

describe('block store', () => {
  test.prop([acts])(
    'returns every text that was not dropped, after any sequence of writes and drops',
    (chosen) => {
      const blocks = new BlockStore();
      const kept = new Map<number, { first: number; text: Bytes }>();
      chosen.forEach((act, number) => {
        const dropped = act.kind === 'drop' ? [...kept.keys()][act.nth % kept.size] : undefined;
        if (act.kind === 'keep') {
          const text = bytesOf(act.length, act.seed);
          kept.set(number, { first: blocks.write(text), text });
        } else if (dropped !== undefined) {
          blocks.free(kept.get(dropped)?.first ?? -1);
          kept.delete(dropped);
        }
      });
      const texts = [...kept.values()];
      expect(texts.map(({ first, text }) => blocks.read(first, text.length))).toEqual(
        texts.map(({ text }) => text),
      );
    },
  );

  test('stores a text longer than a block', () => {
    const blocks = new BlockStore();
    blocks.write(bytesOf(100, 1));
    const text = bytesOf(3 * 1024 ** 2 + 1, 7);
    expect(blocks.read(blocks.write(text), text.length)).toBe(text);
  });

  test('needs no additional memory when removed and added bytes balance', () => {
    const blocks = new BlockStore();
    const most = 10_000;
    let leaving = blocks.write(bytesOf(most, 1));
    for (let round = 0; round < 100; round++) {
      blocks.free(leaving);
      const [one, other] = [bytesOf(round * 90, 2), bytesOf(most - BLOCK_BYTES - round * 90, 3)];
      const places = [blocks.write(one), blocks.write(other)] as const;
      expect(Math.max(...places) * BLOCK_BYTES).toBeLessThan(most);
      blocks.free(places[0]);
      blocks.free(places[1]);
      leaving = blocks.write(bytesOf(most, 4));
    }
  });
});
