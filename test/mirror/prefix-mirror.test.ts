// One mirrored prefix on a manual clock: the age of its records, its schedule and its pauses.
import { partial } from '../support/partial.js';
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/errors.js';
import { toBytes } from '../../src/handle/bytes.js';
import { type HandleRef, handleRef } from '../../src/handle/handle.js';
import type { Host } from '../../src/host.js';
import type { MirrorConfig } from '../../src/plugins/mirror/plugin.js';
import { start } from '../../src/plugins/mirror/mirror.js';
import { ListRefused } from '../../src/plugins/mirror/names.js';
import { PrefixMirror } from '../../src/plugins/mirror/prefix-mirror.js';
import type { FromEntry } from '../../src/resolver/resolution.js';
import { testContext } from '../support/context.js';
import { createManualClock, settled } from '../support/manual-clock.js';

const INTERVAL_MS = 100_000;
const NAMES = new Set(Array.from({ length: 50 }, (_, at) => `21.T1/${at}`));

/** Starts a mirror of a server that answers each read immediately. */
function startMirror({ trustedSince = 0 } = {}) {
  const clock = createManualClock();
  const context = testContext({ clock });
  const entries = new Map<string, FromEntry['entry']>();
  let reads = 0;
  let isAway = false;
  let isRefused = false;
  let isWhole = true;
  let isStale = false;
  let broken: string | undefined;
  let duringList = async (): Promise<void> => Promise.resolve();
  const failIfAway = (): void => {
    if (isAway) throw new ServiceError('UPSTREAM_CONNECT_FAILED', { diagnosis: { cause: 'ECONNREFUSED' } });
  };
  const list = async () => {
    failIfAway();
    if (isRefused) throw new ListRefused('status 401');
    await duringList();
    return Promise.resolve({ names: NAMES, handles: [...NAMES], isWhole });
  };
  const memory = {
    inspect: (key: string) => {
      const entry = entries.get(key);
      return entry && { entry, hits: 0, bytes: 1 };
    },
    peek: (key: string) => entries.get(key),
  };
  const resolver = {
    refresh: async ({ key }: HandleRef): Promise<FromEntry> => {
      reads++;
      failIfAway();
      if (key === broken) throw new TypeError(key);
      const requestedAt = clock.now();
      const known = entries.get(key);
      if (isStale && known) return { kind: 'entry', entry: known, from: 'memory', readAt: requestedAt };
      const times = { requestedAt, staleAt: requestedAt, deleteAt: requestedAt };
      const entry = { kind: 'found' as const, values: toBytes('[]'), message: '', ...times };
      entries.set(key, entry);
      return Promise.resolve({
        kind: 'entry',
        entry,
        from: 'upstream',
        readAt: entry.requestedAt,
        collapsed: false,
      });
    },
  };
  const cache = { memory, trustedSince: () => trustedSince };
  const unexpected: unknown[] = [];
  const mirror = new PrefixMirror(partial<Host>({ ...context, cache, resolver }), '21.T1', INTERVAL_MS, {
    readList: list,
    onUnexpected: (error) => unexpected.push(error),
  });
  void mirror.run();
  return {
    clock,
    mirror,
    lines: context.lines,
    unexpected,
    breakHandle: (key: string) => {
      broken = key;
    },
    entries,
    reads: () => reads,
    setAway: (away: boolean) => {
      isAway = away;
    },
    refuse: () => {
      isRefused = true;
    },
    setWhole: (whole: boolean) => {
      isWhole = whole;
    },
    /** The server has just failed for a client: a refresh resolves to the stored entry. */
    setStale: (stale: boolean) => {
      isStale = stale;
    },
    setDuringList: (run: () => Promise<void>) => {
      duringList = run;
    },
    setTrustedSince: (at: number) => {
      trustedSince = at;
    },
    oldestMs: () =>
      Math.max(...[...NAMES].map((name) => clock.now() - (entries.get(name)?.requestedAt ?? -Infinity))),
  };
}

describe('mirrored prefix', () => {
  it('has no record older than the interval, and reads each twice per interval at most', async () => {
    const { clock, oldestMs, reads, entries } = startMirror();
    await clock.pass(1000);
    for (let step = 0; step < 100; step++) {
      await clock.pass(INTERVAL_MS / 10);
      // A reader loads a record at a different time than the mirror.
      const entry = entries.get(`21.T1/${step % 50}`);
      if (entry) entries.set(`21.T1/${step % 50}`, { ...entry, requestedAt: clock.now() });
      expect(oldestMs()).toBeLessThanOrEqual(INTERVAL_MS);
    }
    expect(reads()).toBeLessThanOrEqual(21 * NAMES.size);
  });

  it('lists nothing once it is closed, even if it was waiting for the lease of Redis', async () => {
    const { clock, mirror, setDuringList } = startMirror({ trustedSince: 1 });
    let lists = 0;
    setDuringList(() => {
      lists++;
      return Promise.resolve();
    });
    await clock.pass(1000);
    mirror.close();
    await clock.pass(INTERVAL_MS);
    expect(lists).toBe(0);
  });

  it('leaves no timer once it is closed, which would keep the records of a closed proxy in memory for hours', async () => {
    const { clock, mirror } = startMirror();
    await clock.pass(1000);
    expect(clock.timers()).toBe(1);
    mirror.close();
    expect(clock.timers()).toBe(0);
  });

  it('has records as old as the list, although its walk ends later', async () => {
    const { clock, mirror } = startMirror();
    await clock.pass(1000);
    expect(mirror.ages().records).toBe(1);
    await clock.pass(INTERVAL_MS - 2000);
    expect(mirror.ages()).toEqual({ list: 49, records: 49 });
  });

  it('has no age of its records while a list is not whole, or a handle cannot be read', async () => {
    const { clock, mirror, breakHandle, setWhole } = startMirror();
    setWhole(false);
    breakHandle('21.T1/7');
    await clock.pass(INTERVAL_MS / 4);
    expect([mirror.handleCounts().failed, mirror.ages().records]).toEqual([1, Infinity]);
    setWhole(true);
    await clock.pass(INTERVAL_MS / 2);
    expect([mirror.handleCounts().failed, mirror.ages().records]).toEqual([1, Infinity]);
    setWhole(false);
    breakHandle('');
    await clock.pass(INTERVAL_MS / 2);
    expect([mirror.handleCounts().failed, mirror.ages().records]).toEqual([0, Infinity]);
    setWhole(true);
    await clock.pass(INTERVAL_MS);
    expect(mirror.ages().records).toBeLessThan(INTERVAL_MS / 1000);
  });

  it('counts a handle as failed if only its older record is served, because the server fails', async () => {
    const { clock, mirror, setStale } = startMirror();
    await clock.pass(1000);
    setStale(true);
    await clock.pass(INTERVAL_MS - 2000);
    expect([mirror.handleCounts().failed, mirror.ages().records]).toEqual([NAMES.size, 99]);
  });

  it('spreads the reads after the first copy over the time until the next list', async () => {
    const { clock, reads } = startMirror();
    await clock.pass(1000);
    expect(reads()).toBe(NAMES.size);
    await clock.pass(INTERVAL_MS / 2 + (INTERVAL_MS / 2) * 0.45);
    expect(reads() / NAMES.size).toBeGreaterThan(1.3);
    expect(reads() / NAMES.size).toBeLessThan(1.7);
  });

  it('pauses for up to a minute between attempts at an unavailable server, and catches up when it returns', async () => {
    const { clock, mirror, reads, setAway, oldestMs, lines } = startMirror();
    await clock.pass(1000);
    setAway(true);
    await clock.pass(1_000_000);
    const readsBefore = reads();
    await clock.pass(1_000_000);
    expect(reads() - readsBefore).toBeLessThan(8 * 20);
    expect(mirror.ages().records).toBeGreaterThan(1900);
    expect(lines.filter(({ msg }) => msg === 'mirrored prefix not listed')).toHaveLength(1);
    setAway(false);
    await clock.pass(INTERVAL_MS + 61_000);
    expect(oldestMs()).toBeLessThanOrEqual(INTERVAL_MS);
    expect(mirror.ages().records).toBeLessThanOrEqual(INTERVAL_MS / 1000);
  });

  it('logs the cause of a failed list, and each further reason', async () => {
    const { clock, setAway, refuse, lines } = startMirror();
    const logged = () => lines.filter(({ msg }) => msg === 'mirrored prefix not listed');
    await clock.pass(1000);
    setAway(true);
    await clock.pass(2 * INTERVAL_MS);
    expect(logged()).toMatchObject([{ cause: 'ECONNREFUSED' }]);
    refuse();
    setAway(false);
    await clock.pass(2 * INTERVAL_MS);
    expect(logged().slice(1)).toMatchObject([{ reason: 'status 401' }]);
  });

  it('gives an unlisted handle a TTL until the next list, and a listed handle none', async () => {
    const { clock, mirror } = startMirror();
    expect(mirror.unknownTtlMs('21.T1/NEW')).toBe(0);
    await clock.pass(10_000);
    expect(mirror.unknownTtlMs('21.T1/NEW')).toBe(INTERVAL_MS / 2 - 10_000);
    expect(mirror.unknownTtlMs('21.T1/0')).toBe(0);
  });

  it('has a current list unless a handle was written after the list was requested', async () => {
    const { clock, mirror, setDuringList } = startMirror();
    let list = (): void => undefined;
    setDuringList(() => new Promise((resolve) => (list = resolve)));
    expect(mirror.currentList()).toBeUndefined();
    list();
    await clock.pass(0);
    expect(mirror.currentList()?.isCurrent).toBe(true);
    mirror.markChanged();
    expect(mirror.currentList()?.isCurrent).toBe(false);
    await clock.pass(INTERVAL_MS / 2);
    // A write that is acknowledged while the list is read may be missing in it.
    mirror.markChanged();
    list();
    await clock.pass(0);
    expect(mirror.currentList()?.isCurrent).toBe(false);
    await clock.pass(INTERVAL_MS / 2);
    list();
    await clock.pass(0);
    expect(mirror.currentList()?.isCurrent).toBe(true);
  });

  it('has no current list without a lease, because writes of other instances may be missing', async () => {
    const { clock, mirror, setTrustedSince } = startMirror();
    await clock.pass(1000);
    // An instance that cannot reach Redis trusts entries of the last seconds, which is too long for a list.
    for (const at of [Infinity, clock.now() - 5000]) {
      setTrustedSince(at);
      expect(mirror.currentList()?.isCurrent).toBe(false);
    }
    setTrustedSince(0);
    expect(mirror.currentList()?.isCurrent).toBe(true);
  });

  it('lists when it has a lease, or five seconds later', async () => {
    const { clock, mirror, setTrustedSince } = startMirror({ trustedSince: Infinity });
    await clock.pass(1000);
    expect(mirror.currentList()).toBeUndefined();
    setTrustedSince(0);
    await clock.pass(100);
    expect(mirror.currentList()?.isCurrent).toBe(true);
    const { clock: later, mirror: alone } = startMirror({ trustedSince: Infinity });
    await later.pass(5100);
    expect(alone.currentList()?.isCurrent).toBe(false);
  });

  it('keeps its list while the server is away, but not once the server refuses it', async () => {
    const { clock, mirror, setAway, refuse } = startMirror();
    await clock.pass(1000);
    setAway(true);
    await clock.pass(10 * INTERVAL_MS);
    expect(mirror.currentList()).toMatchObject({ isCurrent: true, handles: [...NAMES] });
    setAway(false);
    refuse();
    await clock.pass(INTERVAL_MS);
    expect(mirror.currentList()?.isCurrent).toBe(false);
  });

  it('reads the other handles, and lists no more often, while one read has an unexpected error', async () => {
    const { clock, breakHandle, unexpected, reads, entries } = startMirror();
    breakHandle('21.T1/7');
    await clock.pass(INTERVAL_MS / 4);
    expect(entries.size).toBe(NAMES.size - 1);
    expect(unexpected.length).toBe(reads() - (NAMES.size - 1));
    expect(unexpected.length).toBeLessThan(10);
  });

  it('goes on after an unexpected error of a list', async () => {
    const { clock, mirror, setDuringList, unexpected } = startMirror();
    const error = new TypeError('no text');
    setDuringList(() => Promise.reject(error));
    await clock.pass(5 * INTERVAL_MS);
    expect([unexpected.includes(error), mirror.ages().list]).toEqual([true, (5 * INTERVAL_MS) / 1000]);
    expect(unexpected.length).toBeLessThan(20);
    setDuringList(() => Promise.resolve());
    await clock.pass(61_000);
    expect(mirror.ages().list).toBeLessThanOrEqual(61);
  });

  it('warns about records that do not stay in memory', async () => {
    const { clock, entries, lines } = startMirror();
    await clock.pass(1000);
    entries.clear();
    await clock.pass(INTERVAL_MS);
    expect(lines).toContainEqual(
      expect.objectContaining({
        msg: 'mirrored records missing in memory',
        absent: NAMES.size,
        failed: 0,
        // Nothing was evicted.
        remedy: expect.stringMatching(/^raise cache.maxBytes if .+; else they were purged/) as string,
      }),
    );
  });

  it('stops when it is closed', async () => {
    const { clock, mirror, reads } = startMirror();
    await clock.pass(1000);
    mirror.close();
    await clock.pass(10 * INTERVAL_MS);
    expect(reads()).toBe(NAMES.size);
  });
});

describe('mirrors', () => {
  it('begin when the snapshot has been restored', async () => {
    const context = testContext({ clock: createManualClock() });
    let restored = (): void => undefined;
    const whenRestored = new Promise<void>((resolve) => (restored = resolve));
    const mirror = { prefixes: ['21.T1'], intervalMs: INTERVAL_MS, publicLists: false };
    const host = {
      ...context,
      cache: { trustedSince: () => 0, memory: { inspect: () => undefined, peek: () => undefined } },
      upstreams: { findServers: () => [] },
      refOf: (text: string) => handleRef(text, false),
      resolver: { refresh: () => Promise.reject(new Error('no handle is listed')) },
      whenRestored: () => whenRestored,
    };
    start(
      host as unknown as Host,
      {
        mirror: { ...mirror, user: undefined, password: undefined },
        cache: { found: { maxEntries: 10 } },
      } as MirrorConfig,
    );
    await settled();
    expect(context.lines).toEqual([]);
    restored();
    await settled();
    expect(context.lines.map(({ msg }) => msg)).toEqual(['mirrored prefix not listed']);
  });
});
