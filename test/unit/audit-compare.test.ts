// The audit comparison when instances share a Redis, whose messages may arrive late.
import { partial } from '../support/partial.js';
import { describe, expect, it } from 'vitest';
import type { Entry } from '../../src/cache/entry.js';
import type { Host } from '../../src/host.js';
import { createCompare, start as startAudit } from '../../src/plugins/audit/audit.js';
import type { AuditConfig } from '../../src/plugins/audit/plugin.js';
import { MemoryStore } from '../../src/cache/memory/memory-store.js';
import { ServiceError } from '../../src/errors.js';
import { toBytes } from '../../src/handle/bytes.js';
import { refOfKey } from '../../src/handle/handle.js';
import type { Outcome } from '../../src/handle/outcome.js';
import { gate } from '../support/gate.js';
import { CLOCK_NOW, createManualClock, settled } from '../support/manual-clock.js';

const handle = refOfKey('21.T1/A');
const [OLD, NEW] = [toBytes('["old"]'), toBytes('["new"]')];
const served = { entry: { kind: 'found', values: OLD, requestedAt: 1000 }, at: 5000 } as const;
const found = (values: typeof OLD): Outcome => ({ kind: 'found', values, ttls: [86_400] });

interface Situation {
  record?: Outcome;
  redis?: 'up' | 'down' | 'disabled';
  appliedAt?: number;
}

/** Starts a comparison. `waiting` resolves when it starts to wait for messages; `settle` ends the wait. */
function start({ record = found(NEW), redis = 'up', appliedAt }: Situation = {}) {
  const memory = new MemoryStore({
    bounds: { maxBytes: 1e6, found: { maxEntries: 10 }, notFound: { maxEntries: 10 } },
    now: () => 5000,
  });
  let state = redis;
  const { opened: waiting, open: isWaiting } = gate();
  const { opened: settled, open: settle } = gate();
  const host = partial<Host>({
    cache: { memory, redisState: () => state },
    upstreams: { reads: { resolve: () => Promise.resolve(record) } },
    clock: {
      after(_ms, run) {
        isWaiting();
        void settled.then(run);
        return () => undefined;
      },
    },
  });
  const compare = createCompare(host, () => appliedAt);
  return { memory, waiting, settle, lose: () => (state = 'down'), result: compare(handle, partial(served)) };
}

describe('audit comparison', () => {
  it('waits for messages about a write before it reports an older entry', async () => {
    const { memory, waiting, settle, result } = start();
    await waiting;
    memory.applyChange({ kind: 'raise', key: handle.key, fence: 'other/1', lifeMs: 60_000 });
    settle();
    expect(await result).toBe('inconclusive');
  });

  it('reports an older entry if no message arrives', async () => {
    const { waiting, settle, result } = start();
    await waiting;
    settle();
    expect(await result).toBe('older-within-ttl');
  });

  it('is inconclusive if the connection to Redis is lost during the wait', async () => {
    const { waiting, settle, lose, result } = start();
    await waiting;
    lose();
    settle();
    expect(await result).toBe('inconclusive');
  });

  it.each([
    [1200, 'inconclusive'],
    [1300, 'older-after-acknowledged-write'],
  ])(
    'allows for a clock skew of 250 ms: the comparison for a write applied at %i ms is %s',
    async (appliedAt, expected) => {
      const { waiting, settle, result } = start({ appliedAt });
      await waiting;
      settle();
      expect(await result).toBe(expected);
    },
  );

  it('does not wait if the record is equal or Redis is disabled', async () => {
    expect(await start({ record: found(OLD) }).result).toBe('equal');
    const alone = { redis: 'disabled', appliedAt: 1001 } as const;
    expect(await start(alone).result).toBe('older-after-acknowledged-write');
  });

  it('is inconclusive for a service error, and rethrows an unexpected error', async () => {
    const failing = (failure: Error) => {
      const host = partial<Host>({
        cache: { memory: start().memory, redisState: () => 'disabled' },
        upstreams: { reads: { resolve: () => Promise.reject(failure) } },
        clock: { after: () => () => undefined },
      });
      return createCompare(host, () => undefined)(handle, partial(served));
    };
    expect(await failing(new ServiceError('UPSTREAM_TIMEOUT'))).toBe('inconclusive');
    await expect(failing(new Error('a bug'))).rejects.toThrow('a bug');
  });
});

describe('audit after a write', () => {
  it('is inconclusive if another write is applied while the copies are read', async () => {
    const clock = createManualClock();
    const { memory } = start();
    const times = { requestedAt: CLOCK_NOW, staleAt: Infinity, deleteAt: Infinity };
    const copies = [partial<Entry>({ ...served.entry, ...times })];
    const counted: unknown[] = [];
    const host = partial<Host>({
      clock,
      log: { error: () => undefined },
      cache: {
        ...{ memory, redisState: () => 'up', trustedSince: () => 0 },
        inspect() {
          const redis = copies.pop();
          if (redis !== undefined) audit.written?.(handle.key);
          clock.stop(1);
          return Promise.resolve({ memory: undefined, redis });
        },
      },
      upstreams: { reads: { resolve: () => Promise.resolve(found(NEW)) } },
      resolver: { recheck: () => Promise.resolve() },
      hooks: { compared: [] },
      metrics: {
        counterOf: () => (labels: unknown) => counted.push(labels),
        histogramOf: () => () => undefined,
      },
    });
    const config = partial<AuditConfig>({
      audit: { hits: 0, writes: 1, readsPerSecond: 10 },
      cache: { found: { maxTtlMs: 1e6 }, notFound: { ttlMs: 1e6 } },
    });
    const audit = startAudit(host, config);
    audit.written?.(handle.key);
    await clock.pass(1000);
    await settled();
    await clock.pass(2000);
    await settled();
    expect(counted).toContainEqual({ sample: 'write', result: 'inconclusive' });
    expect(counted).not.toContainEqual({ sample: 'write', result: 'older-after-acknowledged-write' });
  });
});
