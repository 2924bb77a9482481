import { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { createHits } from '../../src/observe/hits.js';
import { createLogger } from '../../src/observe/logger.js';
import { type MeasuredHits, createMetrics } from '../../src/observe/metrics.js';

const LINE = { family: 'record', method: 'GET', target: '/x', status: 200 } as const;

function start(destination?: Writable) {
  let time = 0;
  let readings = 0;
  const measured: MeasuredHits[] = [];
  const hits = createHits({
    metrics: { ...createMetrics(), observeHits: (hit) => measured.push(hit) },
    log: createLogger(destination ? { level: 'info', destination } : { level: 'silent' }),
    isLogged: () => true,
    hooks: { sentPrepared: [] },
    clock: {
      wall: () => 1_000_000,
      monotonic: () => {
        readings++;
        return time;
      },
    },
  });
  return {
    measured,
    readings: () => readings,
    flush: hits.flush,
    hit: (handle: string, times: number): void => {
      const line = { ...LINE, handle, exists: true, repeats: 0 };
      for (let at = 0; at < times; at++) {
        const startedAt = hits.startTimer();
        time += 0.25;
        hits.count(line, undefined, startedAt);
        time -= 0.25;
      }
    },
    pass: (ms: number) => (time += ms),
  };
}

const weightOf = (measured: readonly MeasuredHits[], handle: string): number =>
  measured.filter((hit) => hit.handle === handle).reduce((all, { weight }) => all + weight, 0);

describe('hit sampling', () => {
  test('measures the first 1,000 hits per second, then 1 in 16 with weight 16', () => {
    const { hit, measured, readings } = start();
    hit('21.T1/first', 1000);
    hit('21.T1/then', 16_000);
    expect(weightOf(measured, '21.T1/first')).toBe(1000);
    // The weight of a sample includes the hits since the previous one. Up to 15 later hits do not count yet.
    expect(weightOf(measured, '21.T1/then')).toBeGreaterThan(16_000 - 16);
    expect(measured).toHaveLength(2000);
    expect(readings()).toBe(1 + 2 * measured.length);
    expect(measured.every(({ ms }) => ms === 0.25)).toBe(true);
  });

  test('measures the unsampled hits of the previous second first', () => {
    const { hit, measured, pass } = start();
    hit('21.T1/before', 1016 + 15);
    pass(1000);
    hit('21.T1/after', 20);
    expect(weightOf(measured, '21.T1/before') + weightOf(measured, '21.T1/after')).toBe(1051);
  });

  test('logs a duration only for measured hits', () => {
    let text = '';
    const { hit, flush } = start(
      new Writable({
        write(chunk: Buffer, _encoding, done) {
          text += chunk.toString();
          done();
        },
      }),
    );
    hit('21.T1/a', 1002);
    flush();
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { ms?: number });
    expect(lines[0]).toMatchObject({ handle: '21.T1/a', result: 'hit', ms: 0.25, msg: 'request' });
    expect(lines).toHaveLength(1002);
    expect(lines[1001]).not.toHaveProperty('ms');
  });
});
