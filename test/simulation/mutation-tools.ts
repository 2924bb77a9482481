// Tools for mutations, which disable a part of the protocol by replacing methods of a class.
import { Bans } from '../../src/cache/coherence/bans.js';
import { Acknowledgements } from '../../src/cache/link/acknowledgements.js';
import { banAll } from '../../src/cache/coherence/message.js';
import { GroupNumbers } from '../../src/cache/coherence/groups.js';
import { PendingInvalidations } from '../../src/cache/coherence/pending-invalidations.js';
import { LEASE_MS, Lease, type Moment, PauseDetector } from '../../src/cache/coherence/lease.js';
import { readNumbers } from '../../src/cache/redis/group-states.js';
import { RedisCommands } from '../../src/cache/redis/commands.js';
import { BAN, CHANGE, ENTER, SYNC } from '../../src/cache/redis/coherence-scripts.js';
import { RedisStore } from '../../src/cache/redis/store.js';
import { RUN_LENGTH, shiftTimes } from '../../src/cache/entry.js';
import { Member } from '../../src/cache/link/member.js';
import { MemberList } from '../../src/cache/link/member-list.js';

/** Replaces a method of a class. @returns the function that restores the method */
export function replace<T extends object, K extends keyof T>(
  { prototype }: { prototype: T },
  name: K,
  make: (original: T[K]) => T[K],
): () => void {
  const original = prototype[name];
  prototype[name] = make(original);
  return () => {
    prototype[name] = original;
  };
}

export const together =
  (...all: (() => () => void)[]) =>
  (): (() => void) => {
    const restores = all.map((apply) => apply());
    return () => {
      for (const restore of restores) restore();
    };
  };

/** Takes every server for the same run. The name has the length of a run ID, as entries contain it. */
export const assumeSameRun = (): (() => void) => {
  const run = '0'.repeat(RUN_LENGTH);
  return replace(RedisCommands, 'runOf', () => () => run);
};

const never = <T>(): Promise<T> => new Promise<T>(() => undefined);

/** Takes a lock that was released before as free since long ago. */
export const forgetReleases = (): (() => void) =>
  replace(
    RedisCommands,
    'run',
    (original) =>
      async function run<T>(
        this: RedisCommands,
        ...[name, command, timeoutMs]: Parameters<RedisCommands['run']>
      ) {
        const answer = await original.call(this, name, command, timeoutMs);
        return (name === 'lock' && Number(answer) > 1 ? 1e9 : answer) as T;
      },
  );

/** Changes scripts or their arguments before they are sent. */
export const withScripts =
  (change: (source: string, args: readonly unknown[]) => [string, readonly unknown[]]) => () =>
    replace(
      RedisCommands,
      'script',
      (original) =>
        function script(this: RedisCommands, source, keys, args) {
          const [other, changed] = change(source, args);
          return original.call(this, other, keys, changed as typeof args);
        },
    );

export const ignoreGaps = (): (() => void) =>
  replace(
    GroupNumbers,
    'advance',
    (original) =>
      function advance(this: GroupNumbers, group, seq) {
        original.call(this, group, seq);
        return true;
      },
  );

export const passOverRenewed = (): (() => void) =>
  replace(
    MemberList,
    'others',
    (original) =>
      async function others(this: MemberList) {
        const { ends, incompleteForMs } = await original.call(this);
        return { ends: new Map([...ends.keys()].map((member) => [member, 'the same'])), incompleteForMs };
      },
  );

/** Waits for missing acknowledgements without a timeout. */
export const awaitWithoutTimeout = (): (() => void) => {
  let isMissing = false;
  return together(
    () =>
      replace(
        Acknowledgements,
        'missing',
        (original) =>
          function missing(this: Acknowledgements, call, members) {
            const left = original.call(this, call, members);
            isMissing = left.length > 0;
            return left;
          },
      ),
    () =>
      replace(
        MemberList,
        'others',
        (original) =>
          function others(this: MemberList) {
            if (!isMissing) return original.call(this);
            isMissing = false;
            return never();
          },
      ),
  )();
};

const FIRST_CALLS = 8;

/** Returns no other members in the first `FIRST_CALLS` calls. */
export const awaitNoneAtFirst = (): (() => void) => {
  const calls = new WeakMap<MemberList, number>();
  return replace(
    MemberList,
    'others',
    (original) =>
      function others(this: MemberList) {
        const count = (calls.get(this) ?? 0) + 1;
        calls.set(this, count);
        return count <= FIRST_CALLS
          ? Promise.resolve({ ends: new Map(), incompleteForMs: 0 })
          : original.call(this);
      },
  );
};

export const assumeFirstLease = (): (() => void) => {
  const hadLease = new WeakSet<Member>();
  return replace(
    Member,
    'leaseLeftMs',
    (original) =>
      function leaseLeftMs(this: Member) {
        const left = original.call(this);
        if (left > 0) hadLease.add(this);
        return hadLease.has(this) ? left : LEASE_MS;
      },
  );
};

/** Replaces the check for the end of a lease with `isOver`. */
export const withLease = (isOver: (clock: number, endsAt: number) => boolean) => (): (() => void) => {
  const endsAt = new WeakMap<Lease, number>();
  return together(
    () =>
      replace(
        Lease,
        'renew',
        (original) =>
          function renew(this: Lease, askedAt: Moment) {
            endsAt.set(this, askedAt.monotonic + LEASE_MS);
            original.call(this, askedAt);
          },
      ),
    () =>
      replace(
        Lease,
        'end',
        (original) =>
          function end(this: Lease) {
            endsAt.delete(this);
            original.call(this);
          },
      ),
    () =>
      replace(
        Lease,
        'leftMs',
        () =>
          function leftMs(this: Lease) {
            const { monotonic } = this.now();
            const end = endsAt.get(this) ?? -Infinity;
            return end === -Infinity || isOver(monotonic, end) ? 0 : Math.max(1, end - monotonic);
          },
      ),
  )();
};

/** Leaves the times of Redis entries in the clock of Redis, which may run ahead. */
export const keepRedisTimes = (): (() => void) =>
  replace(
    RedisStore,
    'get',
    (original) =>
      async function get(this: RedisStore, key) {
        const found = await original.call(this, key);
        const { entry, ticket } = found;
        return entry && ticket ? { ...found, entry: shiftTimes(entry, ticket.redisClockMs) } : found;
      },
  );

const FEW_FIELDS = CHANGE.replace('<= 192 then', '<= 4 then');
if (FEW_FIELDS === CHANGE) throw new Error('the limit of a group state is written differently');
const FEW = 2;

/** Lowers the limits of the group states, the bans, and the invalidations that wait for Redis, none of which may matter. */
export const lowerLimits = together(
  withScripts((source, args) => {
    if (source === CHANGE) return [FEW_FIELDS, args];
    return [source, source === BAN ? args.with(2, FEW) : source === ENTER ? args.with(6, FEW) : args];
  }),
  () =>
    replace(
      PendingInvalidations,
      'add',
      (original) =>
        function add(this: PendingInvalidations, change) {
          original.call(this, change);
          if (this.size <= FEW) return;
          this.take(Infinity);
          original.call(this, banAll(true));
        },
    ),
);

/** Joins the member list once, so that a member that is removed from it stays without a lease. */
export const joinOnce = (): (() => void) => {
  const joined = new WeakSet<MemberList>();
  return replace(
    MemberList,
    'renew',
    (original) =>
      function renew(this: MemberList, { joins, lease }) {
        const isFirst = joins && !joined.has(this);
        if (isFirst) joined.add(this);
        return original.call(this, { joins: isFirst, lease });
      },
  );
};

/** Notices a pause only when the timer of the next beat fires. */
export const noticePausesLate = (): (() => void) => {
  const atBeat = new WeakMap<PauseDetector, number>();
  let isBeating = false;
  return together(
    () =>
      replace(
        PauseDetector,
        'beat',
        (original) =>
          function beat(this: PauseDetector) {
            original.call(this);
            isBeating = true;
            atBeat.set(this, this.uninterruptedMs());
            isBeating = false;
          },
      ),
    () =>
      replace(
        PauseDetector,
        'uninterruptedMs',
        (original) =>
          function uninterruptedMs(this: PauseDetector) {
            return isBeating ? original.call(this) : (atBeat.get(this) ?? Infinity);
          },
      ),
  )();
};

/** Reads the group numbers before the subscription. */
export const readNumbersFirst = (): (() => void) => {
  const early = new WeakMap<RedisCommands, Map<string, Promise<unknown>>>();
  return together(
    () =>
      replace(
        RedisCommands,
        'script',
        (original) =>
          function script(this: RedisCommands, source, keys, args) {
            const replies = source === SYNC ? early.get(this) : undefined;
            const reply = replies?.get(keys.join());
            if (reply === undefined) {
              const fresh = original.call(this, source, keys, args);
              replies?.set(keys.join(), fresh);
              return fresh;
            }
            replies?.delete(keys.join());
            return reply;
          },
      ),
    () =>
      replace(
        RedisCommands,
        'openSubscription',
        (original) =>
          async function openSubscription(this: RedisCommands, ...args) {
            early.set(this, new Map());
            await readNumbers(this);
            return original.apply(this, args);
          },
      ),
  )();
};

export const awaitNoLapsed = (): (() => void) =>
  replace(
    MemberList,
    'renew',
    (original) =>
      async function renew(this: MemberList, how) {
        return { ...(await original.call(this, how)), areMissing: false };
      },
  );

/** Treats every member list as old enough to name all members that may report. */
export const ignoreListAge = (): (() => void) =>
  replace(
    MemberList,
    'renew',
    (original) =>
      async function renew(this: MemberList, how) {
        return { ...(await original.call(this, how)), listAgeMs: Infinity };
      },
  );

/** Forgets the lapsed members of a lost member list. */
export const forgetLostLapsed = (): (() => void) =>
  replace(
    MemberList,
    'renew',
    (original) =>
      async function renew(this: MemberList, how) {
        const renewed = await original.call(this, how);
        return { ...renewed, areMissing: renewed.lapsed.length > 0 };
      },
  );

/** Loads get the number of the newest ban, although the floor is above it. */
export const keepBansBelowFloor = (): (() => void) =>
  replace(
    Bans,
    'raiseFloor',
    (original) =>
      function raiseFloor(this: Bans, floor) {
        const newest = this.latest;
        original.call(this, floor);
        if (newest > 0 && newest < floor)
          Object.defineProperty(this, 'latest', { configurable: true, value: newest });
      },
  );
