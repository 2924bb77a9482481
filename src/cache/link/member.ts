// The Redis membership of this instance: lease, publications, acknowledgements. See ../coherence/README.md.
import { type Clock, oneAtATime, repeat, untilDeadline, waitAtMost } from '../../clock.js';
import { Fences } from '../coherence/fences.js';
import { GroupNumbers, groupOf } from '../coherence/groups.js';
import {
  INSTANCE_LEASE_RENEWAL_MS,
  LEASE_MS,
  Lease,
  MEMBERSHIP_MS,
  PauseDetector,
} from '../coherence/lease.js';
import { type Change, type Deliver, isInvalidation, parseMessage } from '../coherence/message.js';
import type { PendingInvalidations } from '../coherence/pending-invalidations.js';
import type { RedisCommands } from '../redis/commands.js';
import { timeoutError } from '../redis/errors.js';
import { type Era, enterEra, publishChange, readNumbers } from '../redis/group-states.js';
import { Subscriptions } from '../redis/subscriptions.js';
import { Acknowledgements, awaitAcknowledgements, expelAndWait } from './acknowledgements.js';
import { MemberList, type Renewal } from './member-list.js';

interface MemberDeps {
  commands: RedisCommands;
  clock: Clock;
  pending: PendingInvalidations;
  deliver: Deliver;
  /** Called after each renewal, successful or not, until the member is closed: a stop is no outage. */
  onRenewed: () => void;
}

interface Published {
  /** The message number, which also identifies a ban. */
  seq: number;
  /** Whether Redis has stored the replacement. */
  isStored: boolean;
  /** Resolves to true once no other member serves invalidated entries, and to false if this is unconfirmed. */
  acknowledged: Promise<boolean>;
}

/** Failed renewals in a row that reopen the subscriptions; failed joins after which `isJoining` is false. */
const MAX_FAILURES = 4;
/** Maximum number of groups to distrust separately; above it, the whole cache is distrusted. */
const MAX_DISTRUSTED_GROUPS = 64;
const PUBLISH_TIMEOUT_MS = 1000;
/** Maximum number of members that acknowledge writes; above it, writes wait for the lease time. */
const MAX_ACKNOWLEDGING = 128;
const REPORT_BATCH = 200;

export class Member {
  readonly id: string;
  readonly pauses: PauseDetector;
  readonly #lease: Lease;
  readonly #list: MemberList;
  readonly #subscriptions: Subscriptions;
  readonly #numbers = new GroupNumbers();
  /** Fences raised by current members. When a member lapses, the entries under its fences become stale. */
  readonly #fences = new Fences();
  readonly #acknowledgements = new Acknowledgements();
  /** Unacknowledged calls that were applied in this event-loop turn, by member. */
  readonly #applied = new Map<string, string[]>();
  readonly #awaitingReturn = new Set<(isBack: boolean) => void>();
  /** The current era, and the Redis server run in which this member entered it. */
  #entered = { run: '', name: '', since: Infinity };
  /** Whether the group numbers have been read since the last lease ended, after subscribing. */
  #isEstablished = false;
  #failures = 0;
  /** Failed join attempts since the start or the last expulsion; Infinity once joined. */
  #failedJoins = 0;
  /** Start of the current uninterrupted lease (monotonic, ms); Infinity without a lease. */
  #resumedAt = Infinity;
  /** Send time of the last step that Redis has answered (monotonic, ms): since then, it may have hung until the next answer. */
  #answeredFrom = -Infinity;
  #returningSince: number | undefined;
  #isClosed = false;
  /** Whether changes are being published that are no longer in `pending`. */
  #isReporting = false;
  readonly #cancelTick: () => void;

  constructor(private readonly deps: MemberDeps) {
    const { clock, commands } = deps;
    this.id = clock.randomId();
    this.#lease = new Lease(clock);
    this.pauses = new PauseDetector(clock);
    this.#list = new MemberList(commands, clock, this.id);
    this.#subscriptions = new Subscriptions(commands, this.id, (channel, text) => {
      if (channel !== this.#subscriptions.channels.ofMember(this.id)) {
        this.#receive(text);
        return;
      }
      const [member = '', ...calls] = text.split(' ');
      this.#acknowledgements.receive(member, calls);
    });
    this.#cancelTick = repeat(deps.clock, INSTANCE_LEASE_RENEWAL_MS, () => {
      this.pauses.beat();
      void this.renewNow();
    });
  }

  /** Returns the remaining lease time (ms); 0 if messages may have been missed. */
  leaseLeftMs(): number {
    return this.#lease.leftMs();
  }

  /** Returns the current era; undefined while a different server may be, or may have been, the master. */
  readonly era = (): Era | undefined => (this.#enteredRun() === undefined ? undefined : this.#entered);

  /** Whether this instance is still joining after a start or an expulsion: other members do not wait for it yet. */
  isJoining(): boolean {
    return this.#failedJoins < MAX_FAILURES;
  }

  /** Renews the lease now, instead of at the next interval. */
  readonly renewNow = oneAtATime(async () => {
    const { commands, onRenewed } = this.deps;
    const isOpen = (): boolean => !this.#isClosed;
    if (!isOpen()) return;
    try {
      if (!commands.isConnected()) {
        if (commands.hasEverFailed()) this.#failedJoins++;
        return;
      }
      const isEntered = this.#enteredRun() !== undefined;
      if (!isEntered || !this.#isEstablished || !this.#subscriptions.isComplete()) await this.#establish();
      await this.#renew();
      this.#failures = 0;
    } catch (error) {
      this.#noteFailure(error);
    } finally {
      if (isOpen()) onRenewed();
    }
  });

  /** Publishes a change; undefined if unconfirmed. A fence needs an unbroken lease: others void a lapsed member's. */
  async publish(change: Change): Promise<Published | undefined> {
    const isLeased = (): boolean => change.kind !== 'raise' || this.#lease.leftMs() > 0;
    const run = this.#enteredRun();
    if (this.#isClosed || run === undefined || !isLeased()) return undefined;
    const isAwaited = isInvalidation(change) && change.kind !== 'unknown';
    const call = isAwaited && this.#list.count <= MAX_ACKNOWLEDGING ? this.#acknowledgements.begin() : '';
    try {
      const sent = await this.#send(change, call);
      const acknowledged = isAwaited ? this.#runBarrier(change, call, run) : Promise.resolve(true);
      return isLeased() ? { ...sent, acknowledged } : undefined;
    } catch (error) {
      this.#acknowledgements.end(call);
      this.deps.commands.reportFailure(error);
      return undefined;
    }
  }

  /** Resolves to true once Redis is back and has what is pending, to false `afterRenewalMs` after the last renewal. */
  waitForReturn(afterRenewalMs: number): Promise<boolean> {
    const { clock } = this.deps;
    return new Promise((resolve) => {
      let cancel = (): void => undefined;
      const settle = (isBack: boolean): void => {
        cancel();
        this.#awaitingReturn.delete(settle);
        resolve(isBack);
      };
      const wait = (): void => {
        const leftMs = this.#list.renewedAt + afterRenewalMs - clock.monotonic();
        if (leftMs > 0) cancel = clock.after(leftMs, wait);
        else settle(false);
      };
      this.#awaitingReturn.add(settle);
      wait();
    });
  }

  /**
   * Leaves the member list, so that other members stop waiting for this one. With a change that it could not publish, it
   * stays listed, and its lapse then makes the others start a new era, as after a kill.
   */
  async close(): Promise<void> {
    const { commands, clock } = this.deps;
    // A renewal that runs already may be past the report.
    for (let tries = 0; tries < 2 && this.#hasToReport() && commands.isConnected(); tries++)
      await this.#nextReturn();
    this.#isClosed = true;
    this.#cancelTick();
    this.#lease.end();
    if (commands.isConnected() && !this.#hasToReport()) await waitAtMost(this.#list.leave(), LEASE_MS, clock);
    this.#subscriptions.close();
  }

  #hasToReport(): boolean {
    return this.#isReporting || this.deps.pending.size > 0;
  }

  /** Waits for a renewal, which publishes all pending invalidations, but no longer than a lease. */
  async #nextReturn(): Promise<void> {
    const returned = new Promise<boolean>((resolve) => this.#awaitingReturn.add(resolve));
    void this.renewNow();
    await waitAtMost(returned, LEASE_MS, this.deps.clock);
  }

  /**
   * Forces a reread of the group numbers after a lease has ended: senders no longer wait for this member. Without a lease, it
   * does so if Redis may have hung for the time of a lease.
   */
  #noticeEndOfLease(): void {
    const isAnswered = this.deps.clock.monotonic() - this.#answeredFrom < LEASE_MS;
    if (this.#lease.leftMs() > 0 || (this.#resumedAt === Infinity && isAnswered)) return;
    this.#resumedAt = Infinity;
    this.#isEstablished = false;
    // A different server may have been the master meanwhile, even if the connection stayed open.
    this.#entered = { ...this.#entered, run: '' };
  }

  #noteFailure(error: unknown): void {
    const { commands } = this.deps;
    if (this.#isClosed) return;
    commands.reportFailure(error);
    this.#failedJoins++;
    if (++this.#failures % MAX_FAILURES !== 0) return;
    this.#subscriptions.close();
    commands.rediscover();
  }

  /** Returns the server run of the entered era; undefined if no change can be published or confirmed. */
  #enteredRun(): string | undefined {
    const { commands } = this.deps;
    this.#noticeEndOfLease();
    const run = commands.isConnected() ? commands.runOf(commands.bansName) : undefined;
    return run === this.#entered.run ? run : undefined;
  }

  /** Enters this server's era before any publication. A server that does not know the last era starts a new one. */
  async #enter(known: string): Promise<void> {
    const { commands, clock, deliver } = this.deps;
    const member = { member: this.id, known, next: clock.randomId() };
    const { era, bans } = await this.#step(enterEra(commands, this.#subscriptions.channels, member));
    const former = this.#entered;
    const isSame = former.run === bans.run && former.name === era;
    if (former.name !== '' && !isSame) {
      // The list on this server may lack members whose lease came from a different server.
      this.#list.distrust();
      if (this.#resumedAt !== Infinity) this.#resumedAt = clock.monotonic();
    }
    this.#entered = { run: bans.run, name: era, since: isSame ? former.since : clock.monotonic() };
    void deliver(bans);
  }

  /** Subscribes and joins before it reads the group numbers, so that it misses no message in between. */
  async #establish(): Promise<void> {
    const { commands, deliver } = this.deps;
    this.#isEstablished = false;
    if (!this.#subscriptions.isComplete()) await this.#step(this.#subscriptions.open());
    await this.#enter(this.#entered.name);
    if (this.#lease.leftMs() === 0) {
      await this.#reportPending();
      await this.#step(this.#list.renew({ joins: true, lease: 'none' }));
    }
    const numbers = await this.#step(readNumbers(commands));
    const changed = [...numbers].filter(([group, seq]) => !this.#numbers.adopt(group, seq));
    const groups = changed.map(([group]) => group).filter((group) => group !== 'bans');
    if (groups.length > MAX_DISTRUSTED_GROUPS) void deliver({ kind: 'distrust' });
    else for (const group of groups) void deliver({ kind: 'distrust', group });
    this.#isEstablished = this.#enteredRun() !== undefined;
    this.#failedJoins = Infinity;
  }

  async #renew(): Promise<void> {
    // A renewal ends an outage only once all pending invalidations are published.
    await this.#reportPending();
    const requestedAt = this.#lease.now();
    const isLong = requestedAt.monotonic - this.#resumedAt > MEMBERSHIP_MS;
    const lease = this.#lease.leftMs() === 0 ? 'none' : isLong ? 'long' : 'new';
    const renewing = [this.#subscriptions.ping(), this.#list.renew({ joins: false, lease })] as const;
    const [, renewed] = await this.#step(Promise.all(renewing));
    if (renewed.was === 'absent') {
      this.#leaveAndRejoin();
      return;
    }
    this.#softenLapsed(renewed);
    if (this.#isEstablished && (await this.#mayResume(renewed)) && !this.#isClosed) {
      if (this.#lease.leftMs() === 0) this.#resumedAt = this.#lease.now().monotonic;
      this.#lease.renew(requestedAt);
    }
    for (const settle of this.#awaitingReturn) settle(true);
  }

  /** Ends the lease after a missed message or a loss of the list. The next renewal joins again. */
  #leaveAndRejoin(): void {
    this.#lease.end();
    this.#failedJoins = 0;
    this.#subscriptions.close();
    void this.deps.deliver({ kind: 'distrust' });
  }

  /** Marks entries under fences of lapsed members stale. The next renewal handles later fences. */
  #softenLapsed({ lapsed }: Renewal): void {
    // Expired fences are only dropped here: the memory store marks the entries under them stale.
    while (this.#fences.takeExpired(this.deps.clock.now()) !== undefined);
    const keys = lapsed.flatMap((member) => this.#fences.removeOf(member));
    this.#soften(keys);
    // Each member makes the Redis entries stale, because it may be the only member that knows the fence.
    for (const key of keys) this.deps.pending.add({ kind: 'soften', key });
  }

  #soften(keys: readonly string[]): void {
    for (const key of keys) void this.deps.deliver({ kind: 'soften', key });
  }

  /** Returns whether a lease may start. Lapsed members may still have pending invalidations to publish. */
  async #mayResume({ areMissing, listAgeMs, isVouched }: Renewal): Promise<boolean> {
    if (this.#lease.leftMs() > 0) return true;
    const { clock, commands } = this.deps;
    const now = clock.monotonic();
    if (this.#returningSince === undefined) {
      this.#returningSince = now;
      this.#soften(this.#fences.keys());
    }
    // A recreated list in a cluster lacks former members, although the other masters have kept their entries.
    const isIncomplete = commands.isCluster && listAgeMs < MEMBERSHIP_MS;
    const mayReport = areMissing || isIncomplete;
    if (mayReport && now - this.#returningSince < MEMBERSHIP_MS) return false;
    // A different server may have been the master meanwhile, unknown to the remaining members.
    if (areMissing && !isVouched) await this.#enter(clock.randomId());
    this.#returningSince = undefined;
    return true;
  }

  /** Publishes a change. @throws Error when Redis has not confirmed it */
  async #send(change: Change, call: string): ReturnType<typeof publishChange> {
    if (this.#enteredRun() === undefined)
      throw new Error('the era of this Redis server has not been entered');
    const { commands, clock } = this.deps;
    const publication = { change, member: this.id, call };
    const published = publishChange(commands, this.#subscriptions.channels, publication);
    return untilDeadline(published, PUBLISH_TIMEOUT_MS, timeoutError, clock);
  }

  /**
   * Waits for all members. Publishes the change again if members renewed without acknowledging it, and expels
   * those that miss it twice. Resolves to false if the change is unconfirmed, for example after a failover.
   */
  async #runBarrier(change: Change, call: string, run: string): Promise<boolean> {
    let late = await this.#awaitCall(call, run);
    if (late !== undefined && late.length > 0) {
      const again = this.#acknowledgements.begin();
      const isSent = await this.#send(change, again).then(
        () => true,
        () => false,
      );
      if (isSent) late = await this.#awaitCall(again, run);
      else this.#acknowledgements.end(again);
    }
    const { clock } = this.deps;
    if (late === undefined || !(await expelAndWait(clock, this.#list, late))) return false;
    return this.#enteredRun() === run;
  }

  /** Returns the members that missed the change; undefined without a member list, or after a failover. */
  async #awaitCall(call: string, run: string): Promise<string[] | undefined> {
    const acknowledgements = this.#acknowledgements;
    try {
      if (this.#enteredRun() !== run) return undefined;
      return await awaitAcknowledgements(this.deps.clock, this.#list, acknowledgements, call);
    } finally {
      acknowledgements.end(call);
    }
  }

  /** Publishes and applies all pending invalidations. @throws Error when some fail, which become pending again */
  async #reportPending(): Promise<void> {
    const { pending } = this.deps;
    const applied: unknown[] = [];
    for (let taken = pending.take(REPORT_BATCH); taken.length > 0; taken = pending.take(REPORT_BATCH)) {
      this.#isReporting = true;
      const sent = await Promise.allSettled(taken.map((change) => this.#report(change, applied)));
      this.#isReporting = false;
      taken.forEach((change, at) => {
        if (sent[at]?.status === 'rejected') pending.add(change);
      });
      const failure = sent.find(({ status }) => status === 'rejected');
      if (failure) throw new Error('pending invalidations could not be published', { cause: failure });
    }
    await Promise.all(applied);
  }

  /** Publishes a pending change, and applies it to memory, which may contain the outdated Redis entry. */
  async #report(change: Change, applied: unknown[]): Promise<void> {
    const { seq: number } = await this.#send(change, '');
    applied.push(this.deps.deliver(change.kind === 'ban' ? { ...change, number } : change));
  }

  /** Detects missed messages, then applies and acknowledges a change from a different member. */
  #receive(text: string): void {
    const received = parseMessage(text);
    if (received === undefined) return;
    const { change, seq, member, call } = received;
    const group = change.kind === 'ban' ? 'bans' : groupOf(change.key);
    if (!this.#numbers.advance(group, seq)) {
      // Opening the subscriptions again rereads the bans.
      if (group === 'bans') this.#subscriptions.reset();
      else void this.deps.deliver({ kind: 'distrust', group });
    }
    this.#fences.track(change, this.deps.clock.now());
    // The hub applies this member's own changes.
    if (member === this.id) return;
    const applied = this.deps.deliver(change);
    if (call === '') return;
    if (applied === undefined) this.#acknowledge(member, call);
    else void applied.then(() => this.#acknowledge(member, call));
  }

  /** Sends one message per member and event-loop turn. If it is lost, the sender waits for the lease time. */
  #acknowledge(member: string, call: string): void {
    const calls = this.#applied.get(member);
    if (calls) {
      calls.push(call);
      return;
    }
    this.#applied.set(member, [call]);
    queueMicrotask(() => {
      const { publish, ofMember } = this.#subscriptions.channels;
      const text = [this.id, ...(this.#applied.get(member) ?? [])].join(' ');
      this.#applied.delete(member);
      this.deps.commands.command(publish, ofMember(member), text).catch(() => undefined);
    });
  }

  /** Runs a step of a renewal. @throws Error when it fails or times out, or this member has been closed */
  async #step<T>(promise: Promise<T>): Promise<T> {
    const { clock } = this.deps;
    const sentAt = clock.monotonic();
    const result = await untilDeadline(promise, LEASE_MS, timeoutError, clock);
    if (this.#isClosed) throw new Error('the link is closed');
    this.#noticeEndOfLease();
    this.#answeredFrom = sentAt;
    return result;
  }
}
