// The bounded buffer of the log: what it drops, counts and reports.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { LogBuffer, type LogSink } from '../../src/observe/logger.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/**
 * A sink that writes at most `state.accepts` bytes at a time and `state.room` bytes in total, fails with
 * `state.error`, or does not respond.
 */
function createBuffer() {
  const state = {
    accepts: Infinity,
    room: Infinity,
    error: undefined as string | undefined,
    isSilent: false,
  };
  let text = '';
  let calls = 0;
  const take = (chunk: Buffer): number => {
    if (state.error !== undefined) throw Object.assign(new Error('failed'), { code: state.error });
    if (state.room === 0) throw Object.assign(new Error('full'), { code: 'EAGAIN' });
    const taken = chunk.subarray(0, Math.min(state.accepts, state.room));
    state.room -= taken.length;
    text += taken.toString();
    return taken.length;
  };
  const sink: LogSink = {
    write(chunk, done) {
      calls++;
      if (state.isSilent) return;
      try {
        done(null, take(chunk));
      } catch (error) {
        done(error as Error);
      }
    },
    writeNow: take,
  };
  const buffer = new LogBuffer(sink);
  const counted: number[] = [];
  buffer.onDropped = (count) => counted.push(count);
  return { buffer, state, counted, text: () => text, calls: () => calls };
}

const MIB = 1024 * 1024;
const lineOf = (chars: number): string => `${'x'.repeat(chars - 1)}\n`;
const parsed = (text: string) =>
  text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe('log buffer', () => {
  test('writes lines together, after 100 ms or 32 KiB', async () => {
    const { buffer, text, calls } = createBuffer();
    buffer.write('a\n');
    buffer.write('b\n');
    expect(calls()).toBe(0);
    await vi.advanceTimersByTimeAsync(100);
    expect([text(), calls()]).toEqual(['a\nb\n', 1]);
    buffer.write(lineOf(32 * 1024 - 1));
    expect(calls()).toBe(1);
    buffer.write('c\n');
    expect(calls()).toBe(2);
  });

  test('writes the rest of a partly written chunk before later lines', () => {
    const { buffer, state, text } = createBuffer();
    state.accepts = 1000;
    const lines = `${lineOf(4000)}begin of the next\n`;
    buffer.write(`${lines}${lineOf(4000)}`);
    buffer.write('last\n');
    buffer.flush(() => undefined);
    expect(text()).toBe(`${lines}${lineOf(4000)}last\n`);
  });

  test.each([
    ['does not accept any', (state: { error: string | undefined }) => (state.error = 'ENOSPC')],
    ['does not respond', (state: { isSilent: boolean }) => (state.isSilent = true)],
  ])('drops and counts new lines above 4 Mi characters while the sink %s', (_what, fail) => {
    const { buffer, state, counted } = createBuffer();
    fail(state);
    for (let mib = 0; mib < 4; mib++) buffer.write(lineOf(MIB));
    expect(counted).toEqual([]);
    buffer.write('one\ntwo\n');
    buffer.write('three\n');
    expect(counted).toEqual([2, 1]);
  });

  test('writes again after 100 ms, not for each line, while the sink fails', async () => {
    const { buffer, state, calls } = createBuffer();
    state.error = 'ENOSPC';
    for (let line = 0; line < 100; line++) buffer.write(lineOf(5000));
    expect(calls()).toBe(1);
    await vi.advanceTimersByTimeAsync(100);
    expect(calls()).toBe(2);
  });

  test('keeps all lines of a short outage, in order', async () => {
    const { buffer, state, text, counted } = createBuffer();
    state.error = 'EIO';
    buffer.write(lineOf(5000));
    buffer.write('during\n');
    await vi.advanceTimersByTimeAsync(1000);
    state.error = undefined;
    buffer.write('after\n');
    await vi.advanceTimersByTimeAsync(200);
    expect(text()).toBe(`${lineOf(5000)}during\nafter\n`);
    expect(counted).toEqual([]);
  });

  test('marks in the log where dropping begins, and states the number and the reason when it has ended', async () => {
    const { buffer, state, text } = createBuffer();
    state.error = 'ENOSPC';
    for (let mib = 0; mib < 4; mib++) buffer.write(lineOf(MIB));
    for (let dropped = 0; dropped < 3; dropped++) buffer.write('{"msg":"lost"}\n');
    state.error = undefined;
    await vi.advanceTimersByTimeAsync(200);
    buffer.write('{"msg":"kept"}\n');
    await vi.advanceTimersByTimeAsync(100);
    expect(parsed(text())).toMatchObject([
      { level: 'warn', msg: 'log lines are dropped' },
      { level: 'warn', msg: 'log lines were dropped', dropped: 3, reason: 'ENOSPC' },
      { msg: 'kept' },
    ]);
  });

  test('reports a slow reader once, not for each line that it reads', async () => {
    const { buffer, state, text } = createBuffer();
    state.room = 0;
    for (let mib = 0; mib < 4; mib++) buffer.write(lineOf(MIB));
    for (let turn = 0; turn < 10; turn++) {
      for (let line = 0; line < 3; line++) buffer.write(lineOf(1000));
      state.room = 2000;
      await vi.advanceTimersByTimeAsync(5);
      expect(state.room).toBe(0);
    }
    state.room = Infinity;
    await vi.advanceTimersByTimeAsync(200);
    expect(parsed(text()).map(({ msg }) => msg)).toEqual(['log lines are dropped', 'log lines were dropped']);
  });

  test('calls back a flush after the last line, and after a failed write', () => {
    const { buffer, state, text } = createBuffer();
    let flushed = 0;
    const flush = (): void => {
      buffer.flush(() => flushed++);
    };
    flush();
    expect(flushed).toBe(1);
    buffer.write('a\n');
    flush();
    expect([flushed, text()]).toEqual([2, 'a\n']);
    state.error = 'ENOSPC';
    buffer.write('b\n');
    flush();
    expect(flushed).toBe(3);
  });

  test.each(['ENOSPC', 'EIO', 'EAGAIN'])('gives up at exit when the sink fails with %s', (code) => {
    const { buffer, state, text } = createBuffer();
    buffer.write('a\n');
    buffer.flushNow();
    expect(text()).toBe('a\n');
    state.error = code;
    buffer.write('b\n');
    buffer.flushNow();
    expect(text()).toBe('a\n');
  });
});
