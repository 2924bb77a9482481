// TTLs while the wall clock of the machine is set, through the real app.
import { join } from 'node:path';
import nock from 'nock';
import { fixed } from '../support/fixed.js';
import { fc, test } from '../support/property.js';
import { describe, expect } from 'vitest';
import { type Clock, createSteadyTime } from '../../src/clock.js';
import { useNock } from '../support/nock.js';
import { type Proxy, STARTED_AT, startProxy } from '../support/proxy.js';
import { newFolder } from '../support/folder.js';
import { snapshotOf } from '../support/snapshot.js';
import { HANDLE, PATH, mockUpstream, recordOf, urlValue } from '../support/upstream.js';

useNock();

const TTL_SECONDS = 3;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const TEN_YEARS_MS = 87_600 * HOUR_MS;

/** Starts a proxy on a machine whose clocks the test sets, with a record that has a TTL of 3 s. */
async function start(ttl: number | string = TTL_SECONDS) {
  const upstream = mockUpstream(recordOf([urlValue('https://example.org/', ttl)]));
  const machine = { wall: STARTED_AT, monotonic: 0 };
  const wall = (): number => machine.wall;
  const clock: Partial<Clock> = { wall, now: createSteadyTime({ wall, monotonic: () => machine.monotonic }) };
  const proxy = await startProxy(fixed({ cache: { refreshAhead: { minHits: 0 } } }), { clock });
  const pass = (ms: number): void => {
    machine.wall += ms;
    machine.monotonic += ms;
  };
  return { upstream, machine, proxy, pass };
}

async function read(proxy: Proxy, path = PATH): Promise<{ isHit: boolean; ttl: number; age: number }> {
  const { 'cache-status': status = '', age } = (await proxy.ask(path)).headers;
  return {
    isHit: /; hit;/.test(String(status)),
    ttl: Number(/ttl=(-?\d+)/.exec(String(status))?.[1]),
    age: Number(age),
  };
}

describe('wall clock', () => {
  test('does not prolong the TTL of a record when it is set back', async () => {
    const { machine, proxy, pass } = await start();
    await read(proxy);
    machine.wall -= HOUR_MS;
    expect(await read(proxy)).toEqual({ isHit: true, ttl: 3, age: 0 });
    pass(3000);
    expect(await read(proxy)).toMatchObject({ isHit: false, ttl: 3 });
  });

  test('does not prolong the TTL of a record that was loaded while it was ten years ahead', async () => {
    const { machine, proxy, pass } = await start();
    machine.wall += TEN_YEARS_MS;
    await read(proxy);
    machine.wall -= TEN_YEARS_MS;
    expect(await read(proxy)).toEqual({ isHit: true, ttl: 3, age: 0 });
    pass(3000);
    expect(await read(proxy)).toMatchObject({ isHit: false, ttl: 3 });
  });

  test('counts the time for which the machine was suspended, which the monotonic clock does not', async () => {
    const { machine, proxy } = await start();
    await read(proxy);
    machine.wall += 3000;
    expect(await read(proxy)).toMatchObject({ isHit: false });
  });

  test('decides when an absolute TTL ends, even after it was corrected', async () => {
    const { machine, proxy } = await start(new Date(STARTED_AT + 60_000).toISOString());
    machine.wall -= 30_000;
    expect(await read(proxy)).toMatchObject({ isHit: false, ttl: 90 });
  });

  test('decides the dates of responses', async () => {
    const { machine, proxy } = await start();
    machine.wall -= HOUR_MS;
    const { headers } = await proxy.ask('/robots.txt');
    expect(headers['expires']).toBe(new Date(machine.wall + 60_000).toUTCString());
  });

  test.each([-DAY_MS, -HOUR_MS, HOUR_MS, DAY_MS])(
    'changes only for how long a record is kept when it is set by %i ms during an outage',
    async (stepMs) => {
      const { machine, proxy, upstream, pass } = await start(86_400);
      await read(proxy);
      upstream.answers({ status: 502, body: '<html>' });
      machine.wall += stepMs;
      pass(HOUR_MS / 2);
      const { status, headers } = await proxy.ask(PATH);
      expect(status).toBe(200);
      expect(Number(headers.age)).toBe((HOUR_MS / 2 + Math.max(0, stepMs)) / 1000);
      upstream.answers(recordOf([urlValue('https://example.org/now')]));
      pass(2 * DAY_MS);
      expect((await proxy.ask(PATH)).text).toContain('/now');
    },
  );

  test.each([-DAY_MS, -HOUR_MS, HOUR_MS, DAY_MS])(
    'never makes a restored record fresh, nor loses it, when it is set by %i ms between stop and start',
    async (stepMs) => {
      const file = join(newFolder(), 'snapshot');
      const upstream = await snapshotOf(file);
      upstream.answers({ status: 502, body: '<html>' });
      const now = (): number => STARTED_AT + stepMs;
      const clock = { now, wall: now };
      const proxy = await startProxy({ CACHE_SNAPSHOT_FILE: file, UPSTREAM_RETRY_AFTER: '0s' }, { clock });
      await expect.poll(() => proxy.app.operations.inspect(HANDLE)).toHaveLength(1);
      const { status, headers } = await proxy.ask(PATH);
      expect([status, headers['cache-status']]).toEqual([
        200,
        expect.stringContaining('ttl=0; detail=error'),
      ]);
      upstream.answers(recordOf([urlValue('https://example.org/now')]));
      expect((await proxy.ask(PATH)).text).toContain('/now');
    },
  );

  const events = fc.array(
    fc.oneof(
      fc.record({ passMs: fc.integer({ min: 1, max: 2000 }) }),
      fc.record({ setMs: fc.integer({ min: -TEN_YEARS_MS, max: TEN_YEARS_MS }) }),
    ),
    { maxLength: 12 },
  );

  test.prop([events], { numRuns: 10 })(
    'never makes an answer fresh beyond its TTL, however it is set',
    async (happened) => {
      nock.cleanAll();
      const { machine, proxy, pass, upstream } = await start();
      let loadedAt = machine.monotonic;
      for (const event of happened) {
        if ('passMs' in event) pass(event.passMs);
        else machine.wall += event.setMs;
        const asked = upstream.asked;
        const { isHit, ttl } = await read(proxy);
        expect(upstream.asked).toBe(isHit ? asked : asked + 1);
        if (!isHit) loadedAt = machine.monotonic;
        const leftMs = TTL_SECONDS * 1000 - (machine.monotonic - loadedAt);
        expect(leftMs).toBeGreaterThan(0);
        expect(ttl).toBeLessThanOrEqual(leftMs / 1000);
      }
      await proxy.close();
    },
  );
});
