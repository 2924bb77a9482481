// Lines of files and streams, whatever is in them and wherever they end.
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { readFileLines, streamLines } from '../../src/handle/streams.js';
import { fileOf } from '../support/record-files.js';

/** Returns the lines that were read, and the message of the error that ended them. */
async function linesRead(lines: AsyncIterable<string>): Promise<string[]> {
  const read: string[] = [];
  try {
    for await (const line of lines) read.push(line);
  } catch (error) {
    read.push((error as Error).message);
  }
  return read;
}

const piecesOf = (text: string, length: number): Readable => {
  const bytes = Buffer.from(text);
  const count = Math.ceil(bytes.length / length);
  return Readable.from(
    Array.from({ length: count }, (_, at) => bytes.subarray(at * length, (at + 1) * length)),
    { objectMode: false },
  );
};

describe('lines of a stream', () => {
  test.each([1, 2, 3, 1000])('end at line feeds alone, in pieces of %i bytes', async (length) => {
    const text = 'one\u2028and\u2029two\u0085 ü😀\r\n\nlast';
    expect(await linesRead(streamLines(piecesOf(text, length)))).toEqual([
      'one\u2028and\u2029two\u0085 ü😀',
      '',
      'last',
    ]);
  });

  test('precede the failure of the stream', async () => {
    async function* failing() {
      yield 'one\ntwo\nthr';
      await Promise.reject(new Error('cut off'));
    }
    expect(await linesRead(streamLines(Readable.from(failing())))).toEqual(['one', 'two', 'cut off']);
  });

  test('precede a line that is too long', async () => {
    const lines = streamLines(piecesOf(`one\n${'x'.repeat(2000)}\ntwo\n`, 100), { maxChars: 1000 });
    expect(await linesRead(lines)).toEqual(['one', 'a line has more than 1000 characters']);
  });
});

describe('lines of a compressed file', () => {
  test('precede its cut', async () => {
    const packed = gzipSync(`one\ntwo\n${'x'.repeat(100)}`);
    const read = await linesRead(readFileLines(fileOf(packed.subarray(0, packed.length - 8))));
    expect(read).toEqual(['one', 'two', 'unexpected end of file']);
  });

  test('are not held beyond their maximum', async () => {
    const bomb = gzipSync(Buffer.concat([Buffer.from('one\n'), Buffer.alloc(64 * 2 ** 20, 'x')]));
    expect(bomb.length).toBeLessThan(100_000);
    const read = await linesRead(readFileLines(fileOf(bomb), 1000));
    expect(read).toEqual(['one', 'a line has more than 1000 characters']);
  });
});
