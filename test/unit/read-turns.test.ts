// Long bodies are read in turns: one connection in a turn of the event loop.
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createReadTurns } from '../../src/http/read-turns.js';

/** Opens a connection that has received pieces, and reads them in turns into `read`. */
function openWith(pieces: string[], read: string[], body?: { complete: boolean }): PassThrough {
  const stream = new PassThrough();
  const awaitTurn = createReadTurns(stream as unknown as Socket, body as IncomingMessage | undefined);
  stream.on('data', (piece: Buffer) => {
    read.push(piece.toString());
    awaitTurn();
  });
  for (const piece of pieces) stream.write(piece);
  return stream;
}

describe('turns to read', () => {
  test('let one connection read a piece in each turn of the event loop, in their order', async () => {
    const read: string[] = [];
    for (const name of ['a', 'b', 'c'])
      openWith(
        [1, 2, 3].map((at) => `${name}${at}`),
        read,
      );
    const seen: number[] = [];
    while (read.length < 9) {
      await nextTurn();
      seen.push(read.length);
    }
    expect(read).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'c2', 'a3', 'b3', 'c3']);
    for (const [at, count] of seen.entries()) expect(count - (seen[at - 1] ?? 3)).toBeLessThanOrEqual(1);
  });

  test('hold a connection that Node resumes itself', async () => {
    const read: string[] = [];
    for (let count = 0; count < 20; count++) openWith(['before'], []);
    const stream = openWith(['a', 'b'], read);
    await expect.poll(() => read, { interval: 0 }).toEqual(['a']);
    stream.resume();
    await nextTurn();
    expect(read).toEqual(['a']);
    await expect.poll(() => read, { interval: 0 }).toEqual(['a', 'b']);
  });

  test('do not resume a connection that is paused after its body', async () => {
    const read: string[] = [];
    const body = Object.assign(new PassThrough(), { complete: false });
    const stream = openWith(['a'], read, body);
    await expect.poll(() => read, { interval: 0 }).toEqual(['a']);
    body.complete = true;
    const other: string[] = [];
    openWith(['after', 'turn'], other);
    await expect.poll(() => other, { interval: 0 }).toHaveLength(2);
    expect(stream.isPaused()).toBe(true);
  });
});
