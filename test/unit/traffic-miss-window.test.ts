// These tests use a manual clock.
import { partial } from '../support/partial.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Host } from '../../src/host.js';
import { systemClock } from '../../src/clock.js';
import { LimitedNetworks } from '../../src/plugins/traffic/limited-networks.js';
import { createMetrics } from '../../src/observe/metrics.js';
import { LIMIT_REASONS, type TrafficConfig } from '../../src/plugins/traffic/plugin.js';
import { createMissLimit, MissWindow, judgeMisses } from '../../src/plugins/traffic/traffic.js';
import type { CallerClass } from '../../src/upstream/caller.js';
import type { OriginServer } from '../../src/upstream/contract.js';
import { foldedRef, type HandleRef } from '../../src/handle/handle.js';
import { testContext } from '../support/context.js';

const PER_MINUTE = 300;
/** The prefix whose server is idle. */
const IDLE = '21.T11999';
/** The prefix whose server is under pressure at the same times as that of 21.T11998. */
const OTHER = '21.T12000';
const counted = (answered: number, unknown: number, pressed = 0) => ({ answered, unknown, pressed });

describe('miss-based network limit', () => {
  describe('decision', () => {
    test.each([
      ['one read above the bound, with no record found', counted(301, 301), 0, 'unknown-names'],
      ['exactly the limit ratio', counted(1000, 900), 0, 'unknown-names'],
      ['exactly the allowed reads', counted(300, 300), 0, undefined],
      ['a ratio below the limit', counted(1000, 899), 0, undefined],
      ['a harvester without misses', counted(100_000, 0), 0, undefined],
      ['most of the misses under pressure', counted(0, 0, 301), 600, 'most-misses'],
      ['half of the misses under pressure', counted(0, 0, 301), 602, undefined],
      ['all misses while no other network waits', counted(0, 0, 5000), 5000, undefined],
      ['most of a few misses', counted(0, 0, 300), 301, undefined],
    ])('limits or spares the network as expected after %s', (_what, counts, pressedOfAll, expected) => {
      expect(judgeMisses(counts, pressedOfAll, PER_MINUTE)).toBe(expected);
    });
  });

  test('starts at 0 again after a minute', () => {
    const window = new MissWindow();
    for (let at = 0; at < 5; at++) window.countMisses('n', counted(1, 1, 1), 1_000_000);
    expect(window.countMisses('n', counted(1, 1, 1), 1_060_000)).toEqual({
      counts: counted(1, 1, 1),
      pressedOfAll: 1,
    });
  });

  /** Generates reads from one network with the interval before each. */
  const reads = fc.array(
    fc.record({ afterMs: fc.integer({ min: 0, max: 30_000 }), isUnknown: fc.boolean() }),
    {
      minLength: 1,
      maxLength: 200,
    },
  );

  /** Returns the read times and the times at which the network would be limited. */
  function judgeAll(given: readonly { afterMs: number; isUnknown: boolean }[], perMinute: number) {
    const window = new MissWindow();
    let now = 1_000_000;
    const at: number[] = [];
    const limitedAt: number[] = [];
    for (const { afterMs, isUnknown } of given) {
      now += afterMs;
      at.push(now);
      const { counts, pressedOfAll } = window.countMisses(
        'n',
        { answered: 1, unknown: isUnknown ? 1 : 0 },
        now,
      );
      if (judgeMisses(counts, pressedOfAll, perMinute) !== undefined) limitedAt.push(now);
    }
    return { at, limitedAt };
  }

  const mostInAMinute = (at: readonly number[]): number =>
    Math.max(...at.map((end) => at.filter((time) => time <= end && time > end - 60_000).length));

  test('never applies to a network within the allowed reads per minute', () => {
    fc.assert(
      fc.property(reads, fc.integer({ min: 1, max: 40 }), (given, perMinute) => {
        const { at, limitedAt } = judgeAll(given, perMinute);
        expect(mostInAMinute(at) <= perMinute && limitedAt.length > 0).toBe(false);
      }),
    );
  });

  test('applies to a guesser that doubles the allowed reads within a minute', () => {
    fc.assert(
      fc.property(reads, fc.integer({ min: 1, max: 40 }), (given, perMinute) => {
        const unknown = given.map(({ afterMs }) => ({ afterMs, isUnknown: true }));
        const { at, limitedAt } = judgeAll(unknown, perMinute);
        expect(mostInAMinute(at) > 2 * perMinute && limitedAt.length === 0).toBe(false);
      }),
    );
  });

  test('judges each network independently', () => {
    const networks = fc.constantFrom('a', 'b', 'c');
    const asked = fc.array(fc.record({ network: networks, isUnknown: fc.boolean() }), { maxLength: 100 });
    fc.assert(
      fc.property(asked, (all) => {
        const [together, alone] = [new MissWindow(), new MissWindow()];
        for (const { network, isUnknown } of all) {
          const added = { answered: 1, unknown: isUnknown ? 1 : 0 };
          const { counts } = together.countMisses(network, added, 0);
          if (network === 'a') expect(alone.countMisses('a', added, 0).counts).toEqual(counts);
        }
      }),
    );
  });

  test('forgets the longest quiet network above 20,000 networks', () => {
    const window = new MissWindow();
    const answeredOf = (network: number) =>
      window.countMisses(`2001:db8:${network}::/56`, { answered: 1 }, 0).counts.answered;
    for (let network = 0; network <= 20_000; network++) answeredOf(network);
    expect([answeredOf(20_000), answeredOf(1), answeredOf(0)]).toEqual([2, 2, 1]);
  });

  describe('limited network', () => {
    /** Starts a limit with a manual clock; `read` simulates a read by a caller. */
    function start(
      { isUnderPressure }: { isUnderPressure: () => boolean } = { isUnderPressure: () => false },
    ) {
      const clock = { now: 0 };
      const refused: string[] = [];
      let asked = 0;
      const context = testContext({
        metrics: {
          ...createMetrics(),
          counterOf: () => (labels) => void refused.push(labels['reason'] ?? ''),
        },
        clock: { ...systemClock, wall: () => clock.now, now: () => clock.now },
      });
      const networks = new LimitedNetworks(context);
      const idle = { waiting: 0, limit: 1, running: 0 };
      const usage = () => ({ read: { ...idle, waiting: isUnderPressure() ? 1 : 0 }, forwarded: idle });
      const [idleServer, server, otherServer] = [
        partial<OriginServer>({ usage: () => ({ read: idle, forwarded: idle }) }),
        partial<OriginServer>({ usage }),
        partial<OriginServer>({ usage }),
      ];
      const findServers = ({ prefix }: HandleRef) => {
        if (prefix === IDLE) return [idleServer];
        // The pressed server is the second of its handles.
        return prefix === OTHER ? [otherServer] : [idleServer, server];
      };
      const enumeration = { perMinute: 3, forMs: 10_000 };
      const settings = { current: { traffic: { enumeration } } };
      const limitMiss = createMissLimit(
        partial<Host<TrafficConfig>>({ ...context, settings, upstreams: { findServers } }),
        networks,
      );
      const read = async (
        network: string | undefined,
        given: CallerClass = 'normal',
        isUnknown = true,
        prefix = '21.T11998',
      ) => {
        const caller = { class: given, client: network, network };
        const count = (): Promise<void> => {
          asked++;
          return Promise.resolve();
        };
        const handle = foldedRef(`${prefix}/page`);
        await limitMiss({ handle, caller, read: count, isUnknown: () => isUnknown });
      };
      return { clock, read, networks, refused, asked: () => asked };
    }

    test('restarts with empty counts when its limit is lifted, including one set by a remote instance', async () => {
      const { read, networks, refused } = start();
      for (let times = 0; times < 3; times++) await read('a');
      networks.limit({ network: 'a', until: 10_000, reason: 'unknown-names' });
      expect(await networks.lift('a')).toBe(true);
      for (let times = 0; times < 3; times++) await read('a');
      expect([networks.limits(), refused]).toEqual([[], []]);
    });

    test('is rejected with the remaining time until the limit expires', async () => {
      const { clock, read, networks, refused, asked } = start();
      for (let times = 0; times < 4; times++) await read('a');
      clock.now = 2500;
      await expect(read('a')).rejects.toMatchObject({ code: 'RATE_LIMITED', retryAfterSeconds: 8 });
      expect([asked(), refused]).toEqual([4, ['unknown-names']]);
      await read('b');
      clock.now = 10_000;
      expect(networks.limits()).toEqual([]);
      await read('a');
      expect(asked()).toBe(6);
    });

    test('never includes a caller without a network', async () => {
      const { read, asked } = start({ isUnderPressure: () => true });
      for (let times = 0; times < 50; times++) await read(undefined);
      expect(asked()).toBe(50);
    });

    test('is the one with the most misses while a different network waits', async () => {
      const { read, networks } = start({ isUnderPressure: () => true });
      for (let times = 0; times < 20; times++) await read('greedy', 'normal', false);
      expect(networks.limits()).toEqual([]);
      await read('polite', 'normal', false);
      await expect(read('greedy', 'normal', false)).rejects.toMatchObject({ code: 'RATE_LIMITED' });
      expect(networks.limits()).toEqual([{ network: 'greedy', until: 10_000, reason: 'most-misses' }]);
      await read('polite', 'normal', false);
    });

    test('spares a network whose handles have an idle server', async () => {
      const { read, networks } = start({ isUnderPressure: () => true });
      await read('polite', 'normal', false);
      for (let times = 0; times < 20; times++) await read('elsewhere', 'normal', false, IDLE);
      expect(networks.limits()).toEqual([]);
    });

    test('is compared only with the networks that wait for the same server', async () => {
      const { read, networks } = start({ isUnderPressure: () => true });
      await read('elsewhere', 'normal', false, OTHER);
      for (let times = 0; times < 20; times++) await read('alone', 'normal', false);
      expect(networks.limits()).toEqual([]);
      for (let times = 0; times < 40; times++) await read('elsewhere', 'normal', false, OTHER);
      await read('polite', 'normal', false);
      await expect(read('alone', 'normal', false)).rejects.toMatchObject({ code: 'RATE_LIMITED' });
    });

    test('never includes background callers, which already yield under pressure', async () => {
      const { read, networks } = start({ isUnderPressure: () => true });
      await read('polite', 'normal', false);
      for (let times = 0; times < 20; times++) await read('warm', 'background', false);
      expect(networks.limits()).toEqual([]);
    });

    test('never includes a network whose reads have all failed', async () => {
      const context = testContext({ clock: { ...systemClock, now: () => 0 } });
      const networks = new LimitedNetworks(context);
      const enumeration = { perMinute: 1, forMs: 1000 };
      const settings = { current: { traffic: { enumeration } } };
      const limitMiss = createMissLimit(
        partial<Host<TrafficConfig>>({ ...context, settings, upstreams: { findServers: () => [] } }),
        networks,
      );
      const caller = { class: 'normal', client: 'a', network: 'a' } as const;
      for (let times = 0; times < 5; times++) {
        const read = () => Promise.reject(new Error('down'));
        const failing = limitMiss({ handle: foldedRef(IDLE), caller, read, isUnknown: () => true });
        await expect(failing).rejects.toThrow('down');
      }
      expect(networks.limits()).toEqual([]);
    });
  });

  test('drops the oldest limit when the list of limited networks is full', () => {
    const context = testContext({ clock: { ...systemClock, now: () => 0 } });
    const networks = new LimitedNetworks(context);
    for (let at = 0; at < 10_002; at++)
      networks.limit({ network: `${at}`, until: 1, reason: LIMIT_REASONS[0] });
    const ended = context.lines
      .filter(({ msg }) => msg === 'network no longer limited')
      .map(({ network }) => network);
    expect([networks.limits().length, ended]).toEqual([10_000, ['0', '1']]);
  });

  test('retains a limit until Redis has removed it', async () => {
    const limited = { network: '198.51.100.0/24', until: 2000, reason: 'unknown-names' } as const;
    const networks = new LimitedNetworks(
      testContext({ clock: { ...systemClock, wall: () => 1000, now: () => 1000 } }),
      partial({ run: () => Promise.resolve(undefined), isUp: () => false, keyPrefix: '' }),
    );
    networks.limit(limited);
    await expect(networks.lift(limited.network)).rejects.toMatchObject({ code: 'INVALIDATION_UNCONFIRMED' });
    expect(networks.limits()).toEqual([limited]);
  });
});
