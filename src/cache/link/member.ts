// This instance as a member of those that share a Redis. See ../coherence/README.md.
import { type Clock, oneAtATime, untilDeadline } from '../clock.js';
import { Fences } from '../coherence/fences.js';
import { GroupNumbers, groupOf } from '../coherence/groups.js';
import type { Deliver, Membership, Published } from '../coherence/hub.js';
import { INSTANCE_LEASE_RENEWAL_MS, LEASE_MS, Lease, MEMBERSHIP_MS } from '../coherence/lease.js';
import { type Change, isInvalidation, parseMessage } from '../coherence/message.js';
import type { PendingInvalidations } from '../coherence/pending-invalidations.js';
import type { LinkCommands } from '../redis/commands.js';
import { timeoutError } from '../redis/errors.js';
import { enterEra, publishChange, readNumbers } from '../redis/group-states.js';
import { bansName } from '../redis/namespace.js';
import { Subscriptions } from '../redis/subscriptions.js';
import { Acknowledgements, awaitAcknowledgements, expel } from './acknowledgements.js';
import { MemberList, type Renewal } from './member-list.js';

interface MemberDeps {
  commands: LinkCommands;
  clock: Clock;
  pending: PendingInvalidations;
  deliver: Deliver;
  /** Called after each renewal, which may have failed. */
  onRenewed: () => void;
}

/** A change whose acknowledgements are awaited, and the run of the server that it was sent to. */
interface MemberPublication {
  change: Change;
  call: string;
  run: string;
}

/** Failed renewals in a row after which the message connections are reopened, and failed attempts to join after which Redis counts as away. */
const MAX_FAILURES = 4;
/** With more groups than this, one message distrusts the whole cache. */
const MAX_DISTRUSTED_GROUPS = 64;
/** Timeout for the publication of a change. */
const PUBLISH_TIMEOUT_MS = 1000;
/** With more members than this, a write waits for the lease instead of acknowledgements. */
const MAX_ACKNOWLEDGING = 128;
const REPORT_BATCH = 200;

export class Member implements Membership {
  readonly id: string;
  readonly #deps: MemberDeps;
  readonly #lease: Lease;
  readonly #list: MemberList;
  readonly #subscriptions: Subscriptions;
  readonly #numbers = new GroupNumbers();
  /** Fences of members that have not lapsed: when a writer is lost, the entries under its fences become stale. */
  readonly #fences = new Fences();
  readonly #acknowledgements = new Acknowledgements();
  /** The calls applied in this turn of the event loop and not acknowledged yet, by member. */
  readonly #applied = new Map<string, string[]>();
  readonly #awaitingReturn = new Set<(isBack: boolean) => void>();
  /** The server run whose era this member has entered, and the era. */
  #entered = { run: '', era: '' };
  /** Whether the group numbers were read after subscribing, and after the end of the last lease. */
  #isEstablished = false;
  #failures = 0;
  /** Failed attempts to join, since the start or since this member was expelled. */
  #failedJoins = 0;
  /** Monotonic start of the current unbroken lease; Infinity without a lease. */
  #resumedAt = Infinity;
  #returningSince: number | undefined;
  #isClosed = false;
  #cancelTick: () => void = () => undefined;

  constructor(deps: MemberDeps) {
    const { clock, commands } = deps;
    this.#deps = deps;
    this.id = clock.randomId();
    this.#lease = new Lease(clock);
    this.#list = new MemberList(commands, clock, this.id);
    this.#subscriptions = new Subscriptions(commands, this.id, (channel, text) => {
      if (channel !== this.#subscriptions.channels.ofMember(this.id)) {
        this.#receive(text);
        return;
      }
      const [member = '', ...calls] = text.split(' ');
      this.#acknowledgements.receive(member, calls);
    });
    this.#schedule();
  }

  leaseLeftMs(): number {
    return this.#lease.leftMs();
  }

  isJoining(): boolean {
    return this.#failedJoins < MAX_FAILURES;
  }

  /** Renews the lease now, instead of at the next interval. */
  readonly renewNow = oneAtATime(async () => {
    const { commands, onRenewed } = this.#deps;
    if (this.#isClosed) return;
    try {
      if (!commands.isConnected()) {
        if (commands.hasFailed()) this.#failedJoins++;
        return;
      }
      const isEntered = this.#enteredRun() !== undefined;
      if (!isEntered || !this.#isEstablished || !this.#subscriptions.isComplete()) await this.#establish();
      await this.#renew();
      this.#failures = 0;
    } catch (error) {
      this.#noteFailure(error);
    } finally {
      onRenewed();
    }
  });

  /** A fence counts only if the lease still runs when Redis replies: other members honour it for a time that starts with a renewal. */
  async publish(change: Change): Promise<Published | undefined> {
    const isLeased = (): boolean => change.kind !== 'raise' || this.#lease.leftMs() > 0;
    const run = this.#enteredRun();
    if (this.#isClosed || run === undefined || !isLeased()) return undefined;
    const isAwaited = isInvalidation(change) && change.kind !== 'unknown';
    const call = isAwaited && this.#list.count <= MAX_ACKNOWLEDGING ? this.#acknowledgements.begin() : '';
    try {
      const sent = await this.#send(change, call);
      const acknowledged = isAwaited ? this.#runBarrier({ change, call, run }) : Promise.resolve(true);
      return isLeased() ? { ...sent, acknowledged } : undefined;
    } catch (error) {
      this.#acknowledgements.end(call);
      this.#deps.commands.reportFailure(error);
      return undefined;
    }
  }

  waitForReturn(afterRenewalMs: number): Promise<boolean> {
    const { clock } = this.#deps;
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

  /** Leaves, so that other members stop waiting for this one. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelTick();
    this.#lease.end();
    const { commands, clock } = this.#deps;
    if (commands.isConnected())
      await untilDeadline(this.#list.leave(), LEASE_MS, timeoutError, clock).catch(() => undefined);
    this.#subscriptions.close();
  }

  #schedule(): void {
    this.#cancelTick = this.#deps.clock.after(INSTANCE_LEASE_RENEWAL_MS, () => {
      if (this.#isClosed) return;
      this.#schedule();
      void this.renewNow();
    });
  }

  /** Without a lease this member may have missed messages that no sender waited for: it reads the group numbers again. */
  #noticeEndOfLease(): void {
    if (this.#resumedAt === Infinity || this.#lease.leftMs() > 0) return;
    this.#resumedAt = Infinity;
    this.#isEstablished = false;
    // Another server may have been the master meanwhile, even if this member stayed connected.
    this.#entered = { ...this.#entered, run: '' };
  }

  #noteFailure(error: unknown): void {
    const { commands } = this.#deps;
    if (this.#isClosed) return;
    commands.reportFailure(error);
    this.#failedJoins++;
    if (++this.#failures % MAX_FAILURES !== 0) return;
    this.#subscriptions.close();
    commands.rediscover();
  }

  /** Undefined if no change can be published or confirmed now. */
  #enteredRun(): string | undefined {
    const { commands } = this.#deps;
    this.#noticeEndOfLease();
    const run = commands.isConnected() ? commands.runOf(bansName(commands.keyPrefix)) : undefined;
    return run === this.#entered.run ? run : undefined;
  }

  /** Precedes every publication: this server may have to learn of the era that this member comes from. */
  async #enter(known: string): Promise<void> {
    const { commands, clock, deliver } = this.#deps;
    const member = { member: this.id, known, next: clock.randomId() };
    const { era, bans } = await this.#step(enterEra(commands, this.#subscriptions.channels, member));
    const { run: formerRun, era: formerEra } = this.#entered;
    if (formerEra !== '' && (formerRun !== bans.run || formerEra !== era)) {
      // The list of this server may lack members that got their lease from another server.
      this.#list.distrust();
      if (this.#resumedAt !== Infinity) this.#resumedAt = clock.monotonic();
    }
    this.#entered = { run: bans.run, era };
    deliver(bans);
  }

  /**
   * Subscribes and joins before it reads the group numbers: messages published in between are received, and their senders
   * wait for this member.
   */
  async #establish(): Promise<void> {
    const { commands, deliver } = this.#deps;
    this.#isEstablished = false;
    if (!this.#subscriptions.isComplete()) await this.#step(this.#subscriptions.open());
    await this.#enter(this.#entered.era);
    if (this.#lease.leftMs() === 0) {
      await this.#reportPending();
      await this.#step(this.#list.renew({ joins: true, lease: 'none' }));
    }
    const numbers = await this.#step(readNumbers(commands));
    const changed = [...numbers].filter(([group, seq]) => !this.#numbers.adopt(group, seq));
    const groups = changed.map(([group]) => group).filter((group) => group !== 'bans');
    if (groups.length > MAX_DISTRUSTED_GROUPS) deliver({ kind: 'distrust' });
    else for (const group of groups) deliver({ kind: 'distrust', group });
    this.#isEstablished = true;
    this.#failedJoins = Infinity;
  }

  async #renew(): Promise<void> {
    // A renewal counts as a return only when all pending invalidations are published.
    await this.#reportPending();
    const requestedAt = this.#lease.now();
    const isLong = requestedAt.monotonic - this.#resumedAt > MEMBERSHIP_MS;
    const lease = this.#lease.leftMs() === 0 ? 'none' : isLong ? 'long' : 'new';
    const renewing = [this.#subscriptions.ping(), this.#list.renew({ joins: false, lease })] as const;
    const [, renewed] = await this.#step(Promise.all(renewing));
    this.#noticeEndOfLease();
    if (renewed.was === 'absent') {
      this.#leaveAndRejoin();
      return;
    }
    if (renewed.was === 'late') throw new Error('the renewal reached Redis too late');
    this.#softenLapsed(renewed);
    if (this.#isEstablished && (await this.#mayResume(renewed)) && !this.#isClosed) {
      if (this.#lease.leftMs() === 0) this.#resumedAt = this.#lease.now().monotonic;
      this.#lease.renew(requestedAt);
    }
    for (const settle of this.#awaitingReturn) settle(true);
  }

  /** This member was expelled because it missed a message, or the list was lost. The next renewal joins again. */
  #leaveAndRejoin(): void {
    this.#lease.end();
    this.#failedJoins = 0;
    this.#subscriptions.close();
    this.#deps.deliver({ kind: 'distrust' });
  }

  /** Makes entries under fences of lapsed members stale. The next renewal handles a fence that arrives later. */
  #softenLapsed({ lapsed }: Renewal): void {
    // Only drops expired fences: the memory store has its own copy, and makes those entries stale itself.
    while (this.#fences.takeExpired(this.#deps.clock.now()) !== undefined);
    const keys = lapsed.flatMap((member) => this.#fences.removeOf(member));
    this.#soften(keys);
    // Makes them stale in Redis too. Every member does this, because it may be the only one to know of the fence.
    for (const key of keys) this.#deps.pending.add({ kind: 'soften', key });
  }

  #soften(keys: readonly string[]): void {
    for (const key of keys) this.#deps.deliver({ kind: 'soften', key });
  }

  /** After the end of its lease this member waits, because lapsed members may still have pending invalidations to publish. */
  async #mayResume({ lapsed, listAgeMs, isVouched }: Renewal): Promise<boolean> {
    if (this.#lease.leftMs() > 0) return true;
    const { clock, commands } = this.#deps;
    const now = clock.monotonic();
    if (this.#returningSince === undefined) {
      this.#returningSince = now;
      this.#soften(this.#fences.keys());
    }
    // A new list on one master of a cluster lacks its former members, while the other masters have kept their entries.
    const isIncomplete = commands.isCluster && listAgeMs < MEMBERSHIP_MS;
    const mayReport = lapsed.length > 0 || isIncomplete;
    if (mayReport && now - this.#returningSince < MEMBERSHIP_MS) return false;
    // Another server may have been the master since, and the members that know of it are lost.
    if (lapsed.length > 0 && !isVouched) await this.#enter(clock.randomId());
    this.#returningSince = undefined;
    return true;
  }

  /** @throws Error when Redis has not confirmed the publication */
  async #send(change: Change, call: string): Promise<{ seq: number; isStored: boolean }> {
    const { commands, clock } = this.#deps;
    if (this.#enteredRun() === undefined)
      throw new Error('the era of this Redis server has not been entered');
    const publication = { change, member: this.id, call, now: clock.now() };
    const published = publishChange(commands, this.#subscriptions.channels, publication);
    return await untilDeadline(published, PUBLISH_TIMEOUT_MS, timeoutError, clock);
  }

  /** The publication may be lost with the server that it was sent to, and a former master without it may be back. */
  async #runBarrier(publication: MemberPublication): Promise<boolean> {
    return (await this.#awaitMembers(publication)) && this.#hasEntered(publication.run);
  }

  /** Whether this member can still publish on the server that it has published on. */
  #hasEntered(run: string): boolean {
    return this.#enteredRun() === run;
  }

  /** A member that renews its lease but has missed the message gets it a second time, and is expelled if it misses that too. */
  async #awaitMembers({ change, call, run }: MemberPublication): Promise<boolean> {
    const late = await this.#awaitCall(call, run);
    if (late === undefined || late.length === 0) return late !== undefined;
    const again = this.#acknowledgements.begin();
    const stillLate = await this.#send(change, again).then(
      () => this.#awaitCall(again, run),
      () => late,
    );
    if (stillLate === undefined || stillLate.length === 0) return stillLate !== undefined;
    return expel({ clock: this.#deps.clock, list: this.#list }, stillLate);
  }

  /** The members of another server do not know of the change. */
  async #awaitCall(call: string, run: string): Promise<string[] | undefined> {
    const acknowledgements = this.#acknowledgements;
    const barrier = { clock: this.#deps.clock, list: this.#list, acknowledgements };
    try {
      return this.#hasEntered(run) ? await awaitAcknowledgements(barrier, call) : undefined;
    } finally {
      acknowledgements.end(call);
    }
  }

  /** @throws Error when some pending invalidations could not be published, and are pending again */
  async #reportPending(): Promise<void> {
    const { pending } = this.#deps;
    for (let taken = pending.take(REPORT_BATCH); taken.length > 0; taken = pending.take(REPORT_BATCH)) {
      const sent = await Promise.allSettled(taken.map((change) => this.#report(change)));
      taken.forEach((change, at) => {
        if (sent[at]?.status === 'rejected') pending.add(change);
      });
      const failure = sent.find(({ status }) => status === 'rejected');
      if (failure) throw new Error('pending invalidations could not be published', { cause: failure });
    }
  }

  /** Applied here too: memory may hold a copy of the older Redis entry. */
  async #report(change: Change): Promise<void> {
    const { seq: number } = await this.#send(change, '');
    this.#deps.deliver(change.kind === 'ban' ? { ...change, number } : change);
  }

  /** Checks the number of a message, applies the change of another member and acknowledges it. */
  #receive(text: string): void {
    const received = parseMessage(text);
    if (received === undefined) return;
    const { change, seq, member, call } = received;
    const group = change.kind === 'ban' ? 'bans' : groupOf(change.key);
    if (!this.#numbers.advance(group, seq)) {
      // Missed bans have to be read again.
      if (group === 'bans') this.#subscriptions.reset();
      else this.#deps.deliver({ kind: 'distrust', group });
    }
    this.#fences.track(change, this.#deps.clock.now());
    // The hub applies the changes of this member.
    if (member === this.id) return;
    this.#deps.deliver(change);
    if (call !== '') this.#acknowledge(member, call);
  }

  /** One message per member for all calls of a turn of the event loop. If it is lost, the member waits for the lease instead. */
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
      this.#deps.commands.command(publish, ofMember(member), text).catch(() => undefined);
    });
  }

  /** A step of a renewal. @throws Error when it fails or times out, or this member was closed meanwhile */
  async #step<T>(promise: Promise<T>): Promise<T> {
    const result = await untilDeadline(promise, LEASE_MS, timeoutError, this.#deps.clock);
    if (this.#isClosed) throw new Error('the link is closed');
    return result;
  }
}
