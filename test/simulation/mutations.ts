// Mutations: each disables one part of the protocol, and the simulator must find the violation.
import { Fences } from '../../src/cache/coherence/fences.js';
import { GroupNumbers } from '../../src/cache/coherence/groups.js';
import { PauseDetector } from '../../src/cache/coherence/lease.js';
import { PendingInvalidations } from '../../src/cache/coherence/pending-invalidations.js';
import { CHANGE, ENTER, RENEW } from '../../src/cache/redis/coherence-scripts.js';
import { Member } from '../../src/cache/link/member.js';
import { MemberList } from '../../src/cache/link/member-list.js';
import { TieredStore } from '../../src/cache/tiered-store.js';
import type { FaultName } from './fault-driver.js';
import type { WorldOptions } from './world.js';
import {
  assumeSameRun,
  awaitWithoutTimeout,
  awaitNoLapsed,
  awaitNoneAtFirst,
  forgetReleases,
  ignoreGaps,
  joinOnce,
  keepBansBelowFloor,
  keepRedisTimes,
  noticePausesLate,
  passOverRenewed,
  readNumbersFirst,
  replace,
  together,
  assumeFirstLease,
  withLease,
  withScripts,
} from './mutation-tools.js';

export interface Mutation {
  /** Row of the fault table whose fault the disabled part handles, if any. */
  row?: number;
  /** Disables the part. @returns the function that restores the part */
  apply: () => () => void;
  /** The faults needed to find the violation, by default all. */
  faults?: readonly FaultName[];
  /** The seed that finds the violation fastest. */
  seed?: number;
  /** Whether the violation needs more seeds than a test has time for. */
  isRare?: true;
  /** Deployment options needed to find the violation. */
  world?: Partial<WorldOptions>;
}

/** All instances lose Redis, and acknowledge writes before Redis returns. */
const ALL_LOSE_REDIS = {
  faults: ['Redis frozen'],
  world: { disconnectedWrites: 'wait', disconnectedMaxAgeMs: 0, instances: 4 },
} satisfies Partial<Mutation>;

/** Instances stop between the arrival of a request and its answer, for longer than their lease. */
const STOPPED = {
  faults: ['process stopped'],
  world: { disconnectedMaxAgeMs: 5000, instances: 3 },
} satisfies Partial<Mutation>;

export const MUTATIONS: Record<string, Mutation> = {
  'a renewal counts as an acknowledgement': { seed: 1, row: 1, apply: passOverRenewed },
  'gaps in the sequence numbers are ignored': {
    seed: 2,
    row: 1,
    apply: together(passOverRenewed, ignoreGaps),
    faults: ['message lost'],
  },
  'the barrier has no timeout': { seed: 6, row: 2, apply: awaitWithoutTimeout },
  'the run of the server is not checked': {
    seed: 3,
    row: 3,
    apply: assumeSameRun,
  },
  'the run of the server is not checked after a failover': {
    seed: 6,
    row: 4,
    apply: assumeSameRun,
    faults: ['failover to a stale replica', 'process killed'],
  },
  'a writer without Redis acknowledges immediately': {
    seed: 6,
    row: 5,
    apply: () => replace(Member, 'waitForReturn', () => () => Promise.resolve(false)),
  },
  'a process serves entries as fresh before its first lease': {
    seed: 2,
    row: 6,
    apply: assumeFirstLease,
    faults: ['process killed', 'cut from Redis'],
  },
  'the first writes do not wait for other members': { seed: 6, row: 7, apply: awaitNoneAtFirst },
  // No seed is known. A different test guards the rule: test/cache/redis/store.test.ts, "gives an entry its age, and no
  // longer TTL", fails with this mutation.
  'the times of an entry from Redis are not converted': {
    isRare: true,
    row: 8,
    apply: keepRedisTimes,
    faults: ['cut from Redis'],
    world: { disconnectedMaxAgeMs: 2000, instances: 3 },
  },
  'the two clocks of an instance are not compared': {
    seed: 6,
    row: 9,
    apply: withLease((now, end) => now >= end),
    faults: ['machine suspended'],
  },
  'an authoritative load does not wait for its invalidation': {
    seed: 6,
    row: 10,
    apply: () =>
      replace(
        TieredStore,
        'replace',
        (original) =>
          function replaceAndGoOn(this: TieredStore, ...args) {
            original.apply(this, args).catch(() => undefined);
            return Promise.resolve();
          },
      ),
  },
  // No seed is known. A different test guards the rule: test/live/coherence-scripts.test.ts, "void all earlier loads
  // atomically", fails with this mutation.
  'an authoritative response leaves older loads valid': {
    apply: withScripts((source, args) => [
      source === CHANGE
        ? source.replace("if change ~= 'unchanged' then", "if change ~= 'unchanged' and not replaces then")
        : source,
      args,
    ]),
    isRare: true,
    faults: ['slow upstream'],
  },
  'the eras of a server are not compared': {
    seed: 6,
    apply: withScripts((source, args) => [
      source === ENTER ? source.replace('local isKnown =', 'local isKnown = true or') : source,
      args,
    ]),
    faults: ['failover and back to the old master'],
  },
  'a returning member does not compare the numbers': {
    seed: 2,
    apply: () =>
      replace(
        GroupNumbers,
        'adopt',
        (original) =>
          function adopt(this: GroupNumbers, ...args) {
            original.apply(this, args);
            return true;
          },
      ),
    faults: ['cut from Redis', 'connection lost'],
  },
  'the lease never ends': { seed: 10, apply: withLease(() => false) },
  'the barrier does not wait': {
    seed: 6,
    apply: () =>
      replace(MemberList, 'others', () => () => Promise.resolve({ ends: new Map(), incompleteForMs: 0 })),
  },
  'the age of the member list is not checked': {
    seed: 13,
    apply: () =>
      replace(
        MemberList,
        'others',
        (original) =>
          async function others(this: MemberList) {
            return { ...(await original.call(this)), incompleteForMs: 0 };
          },
      ),
    faults: ['Redis flushed', 'Redis restarted empty', 'message lost', 'slow line'],
    world: { instances: 4 },
  },
  // No seed is known. A different test guards the rule: test/cache/link/member.test.ts, "waits for lapsed members for a
  // bounded time after its lease has ended", fails with this mutation.
  'a returning member does not wait for lapsed members': {
    isRare: true,
    apply: awaitNoLapsed,
    ...ALL_LOSE_REDIS,
  },
  'the release of a lock is not noticed': { seed: 8, apply: forgetReleases },
  'pending invalidations are never published': {
    seed: 7,
    apply: () =>
      replace(
        PendingInvalidations,
        'take',
        (original) =>
          function take(this: PendingInvalidations) {
            original.call(this, Infinity);
            return [];
          },
      ),
    ...ALL_LOSE_REDIS,
  },
  'a floor does not replace the bans below it': {
    seed: 1,
    apply: keepBansBelowFloor,
    faults: ['Redis flushed'],
  },
  'an expelled member does not join again': { seed: 1, apply: joinOnce, faults: ['Redis flushed'] },
  'pauses of the process are not noticed': {
    seed: 2,
    apply: () => replace(PauseDetector, 'uninterruptedMs', () => () => Infinity),
    ...STOPPED,
  },
  'pauses of the process are noticed by a timer, not by the clock': {
    seed: 3,
    apply: noticePausesLate,
    ...STOPPED,
  },
  'late renewals are accepted': {
    isRare: true,
    apply: withScripts((source, args) => [source, source === RENEW ? args.with(6, 1e12) : args]),
    ...ALL_LOSE_REDIS,
  },
  'group numbers are read before joining': { isRare: true, apply: readNumbersFirst },
  'entries under fences of lapsed members are not marked stale': {
    isRare: true,
    apply: () => replace(Fences, 'keys', () => () => []),
  },
  'entries outlive the fence of their key': {
    isRare: true,
    apply: withScripts((source, args) => [
      source === CHANGE ? source.replace("if change == 'raise' and kind", 'if false and kind') : source,
      args,
    ]),
  },
};

/** Row 12: the mutation violates no guarantee, but reloads all entries. */
export const LATE_COMMAND_DISTRUSTS_ALL: Mutation = {
  row: 12,
  apply: () =>
    replace(
      TieredStore,
      'get',
      (original) =>
        async function get(this: TieredStore, key) {
          const looked = await original.call(this, key);
          if (looked.ticket.redis === undefined)
            this.ban({ prefix: '', isSoft: true }).catch(() => undefined);
          return looked;
        },
    ),
  faults: ['slow line'],
};
