// The CPU work of a request is sliced for large records and stopped when the client disconnects.
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { createRunStepsOf } from '../../src/http/request-work.js';
import { type Steps, TimeSlicer } from '../../src/time-slicer.js';

const LARGE = 1024 * 1024;

function start() {
  const res = Object.assign(new EventEmitter(), { locals: {}, destroyed: false });
  const turns: (() => void)[] = [];
  let now = 0;
  const slicer = new TimeSlicer({ monotonic: () => now++, nextTurn: (run) => turns.push(run) });
  let ended = 0;
  let steps = 0;
  function* work(): Steps<string> {
    try {
      for (; steps < 100; steps++) yield;
    } finally {
      ended++;
    }
    return 'done';
  }
  return {
    res,
    run: createRunStepsOf(slicer, () => ({ network: '192.0.2.0/24' }))(res as unknown as ServerResponse),
    work,
    turn: () => turns.shift()?.(),
    done: () => ({ steps, ended }),
  };
}

describe('request work', () => {
  test('is not sliced for small records', () => {
    const { run, work } = start();
    expect(run(work(), 100)).toBe('done');
  });

  test('is sliced for large records', async () => {
    const { run, work, turn, done } = start();
    const running = run(work(), LARGE);
    expect(running).toBeInstanceOf(Promise);
    while (done().ended === 0) turn();
    expect(await running).toBe('done');
  });

  test('stops when the client disconnects', async () => {
    const { res, run, work, turn, done } = start();
    const running = run(work(), LARGE);
    turn();
    const { steps } = done();
    res.emit('close');
    turn();
    await expect(running).rejects.toThrow('the client has left');
    expect(done()).toEqual({ steps, ended: 1 });
    expect(() => run(work(), LARGE)).toThrow('the client has left');
  });
});
