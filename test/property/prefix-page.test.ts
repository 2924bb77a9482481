// Pages of prefixes: no count is lost or repeated, whatever Redis and the clock do, and no path is an error of the proxy.
import type { Redis } from 'ioredis';
import { describe, expect } from 'vitest';
import { createPageCounts, figuresOf } from '../../src/plugins/prefix-page/counts.js';
import { createManualClock } from '../support/manual-clock.js';
import { useNock } from '../support/nock.js';
import { partial } from '../support/partial.js';
import { fc, test } from '../support/property.js';
import { useProxy } from '../support/proxy.js';
import '../support/real-sockets.js';
import { describeWithRedis } from '../support/redis-server.js';
import { useRedis } from '../support/use-redis.js';

const KINDS = ['found', 'unknown', 'failed', 'current', 'outdated'] as const;
const DAY_MS = 86_400_000;

const STATES = ['confirmed', 'lost reply', 'down'] as const;

interface Event {
  add?: (typeof KINDS)[number];
  publish?: (typeof STATES)[number];
  setMs?: number;
  instance?: number;
}

const noCounts = () => ({ found: 0, unknown: 0, failed: 0, current: 0, outdated: 0 });

/** Returns commands that fail as `state` says. */
function unreliable(client: Redis) {
  const link = {
    state: 'confirmed' as (typeof STATES)[number],
    commands: {
      keyPrefix: 't:',
      async run<T>(_name: unknown, command: (redis: Redis) => Promise<T>): Promise<T | undefined> {
        const reply = link.state === 'down' ? undefined : await command(client);
        return link.state === 'confirmed' ? reply : undefined;
      },
      script: (source: string, keys: readonly string[], args: readonly (string | number | Buffer)[]) =>
        client.eval(source, keys.length, ...keys, ...args),
    },
  };
  return link;
}

async function sumsIn(client: Redis): Promise<Record<string, number>> {
  const sums: Record<string, number> = noCounts();
  for (const key of await client.keys('*:21.T1'))
    for (const [field, count] of Object.entries(await client.hgetall(key))) {
      if (field !== 'since') sums[field] = (sums[field] ?? 0) + Number(count);
    }
  return sums;
}

describeWithRedis('counts in Redis', () => {
  const redis = useRedis();

  const instance = fc.nat({ max: 1 });
  const events = fc.array<Event>(
    fc.oneof(
      { weight: 4, arbitrary: fc.record({ add: fc.constantFrom(...KINDS), instance }) },
      { weight: 2, arbitrary: fc.record({ publish: fc.constantFrom(...STATES), instance }) },
      { weight: 1, arbitrary: fc.record({ setMs: fc.integer({ min: -40 * DAY_MS, max: 40 * DAY_MS }) }) },
    ),
    { maxLength: 40 },
  );

  test.prop([events], { numRuns: 40 })(
    'are those of all instances once, whatever replies are lost and however the clock is set',
    async (happened) => {
      await redis.client.flushall();
      const clock = createManualClock();
      clock.setBy(Date.parse('2026-11-15'));
      const link = unreliable(redis.client);
      const host = { clock, cache: { commands: link.commands } };
      const instances = [0, 1].map(() => createPageCounts(['21.T1', '21.T2'], partial(host)));
      const ledger = noCounts();
      for (const { add, publish, setMs = 0, instance = 0 } of happened) {
        clock.setBy(setMs);
        if (add !== undefined) {
          instances[instance]?.add('21.T1', add);
          ledger[add]++;
        }
        if (publish !== undefined) {
          link.state = publish;
          await instances[instance]?.publish();
        }
      }
      link.state = 'confirmed';
      for (const each of instances) await each.publish();
      expect(await sumsIn(redis.client)).toEqual(ledger);
    },
  );
});

describe('figures', () => {
  const row = fc.dictionary(fc.constantFrom(...KINDS, 'later'), fc.oneof(fc.nat(), fc.nat().map(String)));

  test.prop([row])('have fractions that are 1 only if they are all', (counts) => {
    const figures = figuresOf(counts);
    const { resolutions, found, failed, availability, fresh } = figures;
    expect(found).toBeLessThanOrEqual(resolutions);
    expect(availability === 1).toBe(resolutions > 0 && failed === 0);
    expect(fresh === null).toBe(figures.compared === 0);
    for (const fraction of [availability ?? 0, fresh ?? 0]) {
      expect(fraction).toBeGreaterThanOrEqual(0);
      expect(fraction).toBeLessThanOrEqual(1);
    }
  });
});

describe('paths of pages', () => {
  useNock();
  const proxy = useProxy({ PREFIX_PAGES_PREFIXES: '21.T1' });

  const name = fc.oneof(
    fc.string({ minLength: 1 }).map(encodeURIComponent),
    fc.stringMatching(/^[\x21\x24-\x3e\x40-\x7e]{1,20}$/),
    fc.constantFrom(
      '21.t1',
      '21.T1.json',
      '21.T1.JSON',
      '21.T1.json.json',
      '21.T1%2Ejson',
      '%',
      '..',
      '%2e%2e',
    ),
  );

  test.prop([name], { numRuns: 60 })(
    'have a page, or 404, or 400, and never reach the Handle server',
    async (given) => {
      const { status } = await proxy.ask(`/prefixes/${given}`);
      const isListed = /^21(?:\.|%2e)t1(?:\.json)?$/i.test(given) && !given.endsWith('.JSON');
      expect(isListed ? [200] : [400, 404]).toContain(status);
    },
  );
});
