// Client requests: reads, writes, purges, and changes that bypass the proxy. Their results are checked.
import { ServiceError } from '../../src/errors.js';
import type { Instance } from './instance.js';
import { awaitedUntil } from './outages.js';
import type { Answered, Server } from './server.js';
import { exists } from './upstream.js';
import { Violation } from './violation.js';
import type { World } from './world.js';

export interface Target {
  instance: Instance;
  server: Server;
  handle: string;
}

interface Open {
  label: string;
  server: Server;
  life: number;
  startedAt: number;
  idleMs: number;
  limitMs: number;
}

export type Counted =
  | 'reads'
  | 'staleAnswers'
  | 'writes'
  | 'conditionalWrites'
  | 'refusedWrites'
  | 'failedWrites'
  | 'purges'
  | 'refreshes'
  | 'lists';

/** Sum of the upstream and Redis timeouts, and the delay of slow lines. */
const READ_LIMIT_MS = 5000;
/** Sum of fence, upstream, change, two acknowledgement waits and an expulsion, doubled for a Redis outage. */
const WRITE_LIMIT_MS = 45_000;
/** Time within which a lease is renewed after an unnoticed pause. */
const NEXT_LEASE_MS = 2500;
/** Longest pause of a process, and the time until its next lease, in ms. */
const MAX_PAUSE_MS = 15_000 + NEXT_LEASE_MS;
/**
 * Minimum time from the last lease to an acknowledgement without Redis: 9 s minus the lease, on fast clocks.
 */
const MIN_LOST_MS = 6000;

export class Requests {
  readonly counts: Record<Counted, number> = {
    reads: 0,
    staleAnswers: 0,
    writes: 0,
    conditionalWrites: 0,
    refusedWrites: 0,
    failedWrites: 0,
    purges: 0,
    refreshes: 0,
    lists: 0,
  };
  readonly #world: World;
  readonly #open = new Set<Open>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Whether some requests are unanswered. */
  get areOpen(): boolean {
    this.check();
    return this.#open.size > 0;
  }

  read(target: Target, authoritative = false): void {
    const { handle, server, instance } = target;
    const { history, strict, now } = this.#world;
    const oldest = history.oldest(instance.name, handle);
    const oldestStale = strict.oldest(instance.name, handle);
    const hadLease = server.hasLease;
    const kind = authoritative ? 'reads the authority for' : 'reads';
    this.#run(
      target,
      { label: `${kind} ${handle}`, limitMs: authoritative ? WRITE_LIMIT_MS : READ_LIMIT_MS },
      async () => {
        const answered = await server.read(handle, authoritative);
        this.counts.reads++;
        if (answered.isFresh) this.#checkAge(target, answered, { oldest, askedAt: now, hadLease });
        else this.#checkStale(target, answered, oldestStale);
        return `version ${answered.version}${answered.isFresh ? '' : ' (stale)'}`;
      },
    );
  }

  write(target: Target, onAcknowledged: () => void, isConditional = false): void {
    const { server, handle } = target;
    const label = `writes ${handle}${isConditional ? ' under its lock' : ''}`;
    this.#run(target, { label, limitMs: WRITE_LIMIT_MS }, async () => {
      const written = isConditional ? this.#world.conditional.write(target) : server.write(handle);
      const version = await written.catch((failure: unknown) => {
        this.counts.failedWrites++;
        throw failure;
      });
      if (version === undefined) {
        this.counts.refusedWrites++;
        return 'refused';
      }
      this.counts[isConditional ? 'conditionalWrites' : 'writes']++;
      this.#acknowledged(target, version);
      onAcknowledged();
      return `version ${version}`;
    });
  }

  /** Changes the record directly at the Handle server, and reads it authoritatively through the proxy. */
  refresh(target: Target): void {
    const { instance, server, handle } = target;
    this.#world.upstream.change(handle);
    const startedAt = this.#world.now;
    this.#run(target, { label: `refreshes ${handle}`, limitMs: WRITE_LIMIT_MS }, async () => {
      const { version, isFresh } = await server.read(handle, true);
      this.counts.refreshes++;
      // Without Redis, the read waits only if it changes the entry, which may already equal the new record.
      const wasReadable = instance.withoutRedisAt < startedAt && server.cache.isRedisReadable();
      const hasWaited = wasReadable || this.#world.now - startedAt > MIN_LOST_MS;
      if (isFresh && hasWaited) this.#acknowledged(target, version, false);
      return `version ${version}`;
    });
  }

  /** Changes the record directly at the Handle server, and purges it as an operator would. */
  purge(target: Target, isSoft: boolean, prefix?: string): void {
    const { server, handle } = target;
    const version = this.#world.upstream.change(handle);
    const what = prefix === undefined ? { handle } : { prefix };
    this.#run(target, { label: `purges ${prefix ?? handle}`, limitMs: WRITE_LIMIT_MS }, async () => {
      try {
        await server.purge(what, isSoft);
      } finally {
        await server.feed?.record();
      }
      this.counts.purges++;
      this.#acknowledged(target, version, !isSoft);
      return `version ${version}`;
    });
  }

  /** Asks for the list of the prefix, and checks it if it comes from the mirror. */
  list({ instance, server }: Omit<Target, 'handle'>): void {
    if (instance.server !== server || server.feed === undefined) return;
    server.process.post(0, 'lists', () => {
      const listed = server.list();
      if (listed === undefined) return;
      this.counts.lists++;
      for (const handle of this.#world.handles)
        if (!this.#mayBeListed(instance, handle, listed.includes(handle)))
          this.#broken(new Violation('a list has every acknowledged write', `${instance.name}: ${handle}`));
    });
  }

  /** Whether the record exists, or does not, in a version from the last acknowledged one on. */
  #mayBeListed({ name, process }: Instance, handle: string, isListed: boolean): boolean {
    const { strict, upstream, now } = this.#world;
    if (now - process.unnoticedUntil < NEXT_LEASE_MS) return true;
    // Lists may lack what another instance has acknowledged without Redis and not reported yet.
    for (
      let version = strict.oldest(name, handle, now, -Infinity);
      version <= upstream.version(handle);
      version++
    )
      if (exists(version) === isListed) return true;
    return false;
  }

  /** Checks that no request takes too long. @throws Violation */
  check(): void {
    const { now } = this.#world;
    for (const open of this.#open) {
      const { server, life, startedAt, idleMs, limitMs, label } = open;
      if (server.process.life !== life) this.#open.delete(open);
      else if (now - startedAt - (server.process.idleMs - idleMs) > limitMs)
        throw new Violation(
          'every request ends in time',
          `${server.process.name} ${label} since ${startedAt.toFixed()}`,
        );
    }
  }

  #run(
    { instance, server }: Target,
    { label, limitMs }: { label: string; limitMs: number },
    work: () => Promise<string>,
  ): void {
    if (instance.server !== server) return;
    const { process } = server;
    const { life, idleMs } = process;
    const open: Open = { label, server, life, startedAt: this.#world.now, idleMs, limitMs };
    this.#open.add(open);
    process.post(0, label, () => {
      void work()
        .catch((failure: unknown) => {
          if (failure instanceof ServiceError) return `failed: ${failure.code}`;
          this.#broken(
            failure instanceof Violation
              ? failure
              : new Violation('nothing fails unexpectedly', `${process.name} ${label}: ${String(failure)}`),
          );
          return 'broken';
        })
        .then((result) => {
          this.#open.delete(open);
          process.note(`${label}: ${result}`);
        });
    });
  }

  #broken(violation: Violation): void {
    this.#world.violation ??= violation;
  }

  /** `isStrict`: whether the older record was deleted on every instance, so that it is not even served stale. */
  #acknowledged({ instance, handle }: Target, version: number, isStrict = true): void {
    const { now, history, strict, options, instances, returnedAt } = this.#world;
    const isConfirmed = options.disconnectedWrites === 'reject' || now - instance.linkedAt < MIN_LOST_MS;
    // During its pause, its successor may have granted leases that this instance does not know of.
    const missedMaster =
      now - instance.process.unnoticedUntil < NEXT_LEASE_MS && now - returnedAt < MAX_PAUSE_MS;
    const isAlone = instance.wasAlone || instances.some((other) => other !== instance && other.hasLease);
    const by = missedMaster ? 'alone' : isConfirmed ? 'confirmed' : isAlone ? 'alone' : 'cut off';
    const acknowledged = { handle, version, instance: instance.name, at: now, by } as const;
    history.acknowledged(acknowledged);
    if (isStrict) strict.acknowledged(acknowledged);
  }

  /** Checks the age of a stale response, which is not limited once Redis or a process has failed. */
  #checkStale({ instance, handle }: Target, { version }: Answered, oldest: number): void {
    this.counts.staleAnswers++;
    if (version >= oldest || this.#world.options.keepsRedis !== true) return;
    const detail = `${instance.name} answers version ${version} of ${handle}, asked when ${oldest} was acknowledged`;
    throw new Violation('no older answer while only the Handle server fails', detail);
  }

  /** Checks the age of a response, and allows the exceptions that coherence/README.md lists. */
  #checkAge(
    target: Target,
    { version, entry }: Answered,
    { oldest, askedAt, hadLease }: { oldest: number; askedAt: number; hadLease: boolean },
  ): void {
    if (version >= oldest) return;
    const { instance, server, handle } = target;
    const { now, history } = this.#world;
    if (now - server.process.unnoticedUntil < NEXT_LEASE_MS) return;
    // A reader who came without a lease may share a load in flight, which ends with one.
    if (!(hadLease && server.hasLease) && this.#mayBeOld(target, version, askedAt)) return;
    const awaitedAt = Math.min(askedAt, awaitedUntil(this.#world, server.process, entry));
    if (version >= history.oldest(instance.name, handle, askedAt, awaitedAt)) return;
    const detail = `${server.process.name} answers version ${version} of ${handle}, asked when ${oldest} was acknowledged`;
    throw new Violation('no older answer after an acknowledgement', detail);
  }

  /**
   * Whether the response may be old: without Redis, an instance serves entries that it loaded recently, but
   * none from before a pause.
   */
  #mayBeOld({ instance, handle }: Target, version: number, askedAt: number): boolean {
    const { history, now, options } = this.#world;
    const { disconnectedMaxAgeMs } = options;
    const youngAfter = Math.max(now - 1.1 * disconnectedMaxAgeMs, instance.process.resumedAt);
    const loadedAfter = Math.min(askedAt, youngAfter);
    return disconnectedMaxAgeMs > 0 && version >= history.oldest(instance.name, handle, loadedAfter);
  }
}
