// The CPU work of a request is sliced for large records and stopped when the client disconnects. The records
// that wait for a slice are bounded.
import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, expect, test, vi } from 'vitest';
import { contextOf, createOpenContext } from '../../src/http/context.js';
import { refuseLargeRecord, signalOfLeaving } from '../../src/http/request-work.js';
import { RequestWork, type Steps, TimeSlicer } from '../../src/time-slicer.js';

const MIB = 1024 * 1024;
const LARGE = MIB;

function start() {
  const turns: (() => void)[] = [];
  let now = 0;
  const slicer = new TimeSlicer({
    monotonic: () => now++,
    nextTurn: (run) => turns.push(run),
    records: { maxChars: MIB, refuse: refuseLargeRecord },
  });
  let ended = 0;
  let steps = 0;
  function* work(): Steps<string> {
    try {
      for (let at = 0; at < 100; at++) {
        steps++;
        yield;
      }
    } finally {
      ended++;
    }
    return 'done';
  }
  const runOf = (res: EventEmitter, network: string) =>
    new RequestWork(slicer, network, () => signalOfLeaving(res as unknown as ServerResponse)).run;
  /** Creates a request of a client network. */
  const request = (network = '192.0.2.0/24') => {
    const res = Object.assign(new EventEmitter(), { destroyed: false });
    return { res, run: runOf(res, network) };
  };
  const { res, run } = request();
  return {
    slicer,
    res,
    run,
    runOf,
    request,
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

  test('watches the connection once for all records of a batch', () => {
    const { res, runOf, work } = start();
    for (let at = 0; at < 20; at++) void runOf(res, '192.0.2.0/24')(work(), Infinity);
    expect(res.listenerCount('close')).toBe(1);
  });

  test('stops when the client disconnects', async () => {
    const { res, run, work, turn, done } = start();
    const running = run(work(), LARGE);
    const { steps } = done();
    res.emit('close');
    while (done().ended === 0) turn();
    await expect(running).rejects.toThrow('the client has left');
    expect(done()).toEqual({ steps, ended: 1 });
    expect(() => run(work(), LARGE)).toThrow('the client has left');
  });

  test('is charged to the network of the client, even behind a trusted proxy', () => {
    const { slicer, work } = start();
    const run = vi.spyOn(slicer, 'run');
    const client = { address: '192.0.2.1', network: '192.0.2.0/24', isLocal: false };
    const open = createOpenContext(
      () => undefined,
      () => ({ ...client, peer: { address: '127.0.0.1', isTrusted: true } }),
      () => undefined,
      slicer,
    );
    const req = { url: '/api/handles/21.T1/a', method: 'GET', headers: {} };
    const res = new EventEmitter() as unknown as ServerResponse;
    open(req as unknown as IncomingMessage, res);
    void contextOf(res).runSteps(work(), LARGE);
    expect(run).toHaveBeenCalledWith(expect.anything(), expect.objectContaining({ client: '192.0.2.0/24' }));
  });

  test('is refused with Retry-After while a network has as much waiting as 16 of the largest records', async () => {
    const { request, work, turn, done } = start();
    const ask = (network: string): unknown => request(network).run(work(), 2 * MIB);
    const waiting = Array.from({ length: 8 }, () => ask('a'));
    expect(() => ask('a')).toThrow(
      expect.objectContaining({ code: 'OVERLOADED', status: 503, retryAfterSeconds: 1 }),
    );
    waiting.push(ask('b'));
    while (done().ended < 9) turn();
    expect(await Promise.all(waiting)).toEqual(Array<string>(9).fill('done'));
    expect(ask('a')).toBeInstanceOf(Promise);
  });

  test('is refused while all networks have as much waiting as 64 of the largest records', () => {
    const { request, work } = start();
    const ask = (network: number): unknown => request(`${network}`).run(work(), 8 * MIB);
    for (let network = 0; network < 4; network++) {
      void ask(network);
      void ask(network);
    }
    expect(() => ask(0)).toThrow('too many large records');
    // A network's only record may exceed the total once.
    void ask(5);
    expect(() => ask(6)).toThrow('too many large records');
  });

  test('admits the only record of a network, of any size', () => {
    const { request, work } = start();
    expect(request().run(work(), 20 * MIB)).toBeInstanceOf(Promise);
    expect(() => request().run(work(), LARGE)).toThrow('too many large records');
  });

  test('counts nothing for steps that read their records themselves', () => {
    const { request, work } = start();
    for (let times = 0; times < 100; times++) expect(request().run(work(), Infinity)).toBeInstanceOf(Promise);
  });
});
