// Texts in blocks outside the V8 heap.
import { fc, test } from '@fast-check/vitest';
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

describe('blocks', () => {
  test.prop([acts])(
    'give back each text that was not dropped, whatever came and went meanwhile',
    (chosen) => {
      const slabs = new BlockStore();
      const kept = new Map<number, { first: number; text: Bytes }>();
      chosen.forEach((act, number) => {
        const dropped = act.kind === 'drop' ? [...kept.keys()][act.nth % kept.size] : undefined;
        if (act.kind === 'keep') {
          const text = bytesOf(act.length, act.seed);
          kept.set(number, { first: slabs.write(text), text });
        } else if (dropped !== undefined) {
          slabs.free(kept.get(dropped)?.first ?? -1);
          kept.delete(dropped);
        }
      });
      const texts = [...kept.values()];
      expect(texts.map(({ first, text }) => slabs.read(first, text.length))).toEqual(
        texts.map(({ text }) => text),
      );
    },
  );

  test('keep a text that is longer than one of them', () => {
    const slabs = new BlockStore();
    slabs.write(bytesOf(100, 1));
    const text = bytesOf(3 * 1024 ** 2 + 1, 7);
    expect(slabs.read(slabs.write(text), text.length)).toBe(text);
  });

  test('take no more memory when as many bytes are added as removed, of any length', () => {
    const slabs = new BlockStore();
    const most = 10_000;
    let leaving = slabs.write(bytesOf(most, 1));
    for (let round = 0; round < 100; round++) {
      slabs.free(leaving);
      const [one, other] = [bytesOf(round * 90, 2), bytesOf(most - BLOCK_BYTES - round * 90, 3)];
      const places = [slabs.write(one), slabs.write(other)] as const;
      expect(Math.max(...places) * BLOCK_BYTES).toBeLessThan(most);
      slabs.free(places[0]);
      slabs.free(places[1]);
      leaving = slabs.write(bytesOf(most, 4));
    }
  });
});
