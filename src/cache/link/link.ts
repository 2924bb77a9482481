// The link of this instance to the others on one Redis: lease, membership, messages. See ../coherence/README.md.
import { Acknowledgements, createAcknowledger } from './acknowledgements.js';
import { type Clock, oneAtATime, untilDeadline } from '../clock.js';
import { LEASE_MS, Lease, MEMBERSHIP_MS, INSTANCE_LEASE_RENEWAL_MS } from '../coherence/lease.js';
import type { Deliver, Membership, Published } from '../coherence/hub.js';
import type { Change } from '../coherence/message.js';
import type { PendingInvalidations } from '../coherence/pending-invalidations.js';
import { enterEra, readNumbers } from '../redis/group-states.js';
import { timeoutError } from '../redis/errors.js';
import type { LinkCommands } from '../redis/commands.js';
import { bansName } from '../redis/namespace.js';
import { Members, type Renewal } from './members.js';
import { Publisher } from './publisher.js';
import { Receiver } from './receiver.js';
import { Subscriptions } from './subscriptions.js';

interface RedisLinkDeps {
  commands: LinkCommands;
  clock: Clock;
  pending: PendingInvalidations;
  deliver: Deliver;
  /** Called after each renewal, which may have failed. */
  onRenewed: () => void;
}

/** Failed renewals in a row after which the message connections are reopened, and failed attempts to join after which Redis counts as away. */
const MAX_FAILURES = 4;
/** With more groups than this, one message distrusts the whole cache. */
const MAX_DISTRUSTED_GROUPS = 64;

export class RedisLink implements Membership {
  readonly id: string;
  readonly #deps: RedisLinkDeps;
  readonly #lease: Lease;
  readonly #members: Members;
  readonly #receiver: Receiver;
  readonly #subscriptions: Subscriptions;
  readonly #publisher: Publisher;
  readonly #awaitingReturn = new Set<(isBack: boolean) => void>();
  /** The server run whose era this member has entered, and the era. */
  #entered = { run: '', era: '' };
  /** Whether the group numbers were read after subscribing, and after the end of the last lease. */
  #isEstablished = false;
  #memberCount = 1;
  #failures = 0;
  /** Failed attempts to join, since the start or since this member was expelled. */
  #failedJoins = 0;
  /** Moments on the monotonic clock. The lease has been renewed in time since `#resumedAt`. */
  #resumedAt = Infinity;
  #returningSince: number | undefined;
  #isClosed = false;
  #cancelTick: () => void = () => undefined;

  constructor(deps: RedisLinkDeps) {
    const { clock, commands, deliver } = deps;
    this.#deps = deps;
    this.id = clock.randomId();
    this.#lease = new Lease(clock);
    this.#members = new Members(commands, clock, this.id);
    const acknowledgements = new Acknowledgements();
    this.#publisher = new Publisher({
      commands,
      clock,
      id: this.id,
      members: this.#members,
      acknowledgements,
      deliver,
      channels: () => this.#subscriptions.channels,
      enteredRun: () => this.#enteredRun(),
    });
    const acknowledge = createAcknowledger(this.id, (member, text) => {
      const { publish, ofMember } = this.#subscriptions.channels;
      commands.command(publish, ofMember(member), text).catch(() => undefined);
    });
    this.#receiver = new Receiver({
      id: this.id,
      clock,
      deliver,
      acknowledge,
      onMissedBans: () => {
        this.#subscriptions.reset();
      },
    });
    this.#subscriptions = new Subscriptions({
      commands,
      id: this.id,
      onChange: (text) => {
        this.#receiver.receive(text);
      },
      onAcknowledgement: (text) => {
        const [member = '', ...calls] = text.split(' ');
        acknowledgements.receive(member, calls);
      },
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
    const { commands } = this.#deps;
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
      this.#deps.onRenewed();
    }
  });

  /** A fence counts only if the lease still runs when Redis replies: other members know it for a time that starts with a renewal. */
  async publish(change: Change): Promise<Published | undefined> {
    const isLeased = (): boolean => change.kind !== 'raise' || this.#lease.leftMs() > 0;
    if (this.#isClosed || !isLeased()) return undefined;
    const published = await this.#publisher.publish(change, this.#memberCount);
    return isLeased() ? published : undefined;
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
        const leftMs = this.#members.renewedAt + afterRenewalMs - clock.monotonic();
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
    if (this.#deps.commands.isConnected())
      await this.#withTimeout(this.#members.leave()).catch(() => undefined);
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
    // Another server may have been the master meanwhile, also when this one was connected all the time.
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

  /** Undefined: nothing can be published, and no publication confirmed. */
  #enteredRun(): string | undefined {
    const { commands } = this.#deps;
    this.#noticeEndOfLease();
    const run = commands.isConnected() ? commands.runOf(bansName(commands.keyPrefix)) : undefined;
    return run === this.#entered.run ? run : undefined;
  }

  /** Nothing is published before: this server may have to learn of the era that this member comes from. */
  async #enter(known: string): Promise<void> {
    const { commands, clock, deliver } = this.#deps;
    const member = { member: this.id, known, next: clock.randomId() };
    const { era, bans } = await this.#step(enterEra(commands, this.#subscriptions.channels, member));
    const { run: formerRun, era: formerEra } = this.#entered;
    if (formerEra !== '' && (formerRun !== bans.run || formerEra !== era)) this.#comeFromElsewhere();
    this.#entered = { run: bans.run, era };
    deliver(bans);
  }

  /** The list of this server may lack members that got their lease from another server. */
  #comeFromElsewhere(): void {
    const now = this.#deps.clock.monotonic();
    this.#members.distrustList();
    if (this.#resumedAt !== Infinity) this.#resumedAt = now;
  }

  /**
   * Subscribes and joins before it reads the group numbers: messages published in between are received, and their senders
   * wait for this member.
   */
  async #establish(): Promise<void> {
    const { commands, deliver, pending } = this.#deps;
    this.#isEstablished = false;
    if (!this.#subscriptions.isComplete()) await this.#step(this.#subscriptions.open());
    await this.#enter(this.#entered.era);
    if (this.#lease.leftMs() === 0) {
      await this.#publisher.report(pending);
      await this.#step(this.#members.renew({ joins: true, lease: 'none' }));
    }
    const numbers = await this.#step(readNumbers(commands));
    const changed = [...numbers].filter(([group, seq]) => !this.#receiver.numbers.adopt(group, seq));
    const groups = changed.map(([group]) => group).filter((group) => group !== 'bans');
    if (groups.length > MAX_DISTRUSTED_GROUPS) deliver({ kind: 'distrust' });
    else for (const group of groups) deliver({ kind: 'distrust', group });
    this.#isEstablished = true;
    this.#failedJoins = Infinity;
  }

  async #renew(): Promise<void> {
    // A renewal counts as a return only when all pending invalidations are published.
    await this.#publisher.report(this.#deps.pending);
    const requestedAt = this.#lease.now();
    const isLong = requestedAt.monotonic - this.#resumedAt > MEMBERSHIP_MS;
    const lease = this.#lease.leftMs() === 0 ? 'none' : isLong ? 'long' : 'new';
    const renewing = [this.#subscriptions.ping(), this.#members.renew({ joins: false, lease })] as const;
    const [, renewed] = await this.#step(Promise.all(renewing));
    this.#noticeEndOfLease();
    if (renewed.was === 'absent') {
      this.#leaveAndRejoin();
      return;
    }
    if (renewed.was === 'late') throw new Error('the renewal reached Redis too late');
    this.#memberCount = renewed.count;
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

  /** A lapsed member cannot lower its fences any more. */
  #softenLapsed({ lapsed }: Renewal): void {
    this.#receiver.dropExpiredFences();
    // In Redis too. Every member does this, because it may be the only one that knows of the fence.
    for (const member of lapsed)
      for (const key of this.#receiver.removeFencesOf(member))
        this.#deps.pending.add({ kind: 'soften', key });
  }

  /** After the end of its lease this member waits, because lapsed members may still have pending invalidations to publish. */
  async #mayResume({ lapsed, listAgeMs, isVouched }: Renewal): Promise<boolean> {
    if (this.#lease.leftMs() > 0) return true;
    const now = this.#deps.clock.monotonic();
    if (this.#returningSince === undefined) {
      this.#returningSince = now;
      this.#receiver.softenFencedKeys();
    }
    // A new list on one master of a cluster lacks its former members, while the other masters have kept their entries.
    const isIncomplete = this.#deps.commands.isCluster && listAgeMs < MEMBERSHIP_MS;
    const mayReport = lapsed.length > 0 || isIncomplete;
    if (mayReport && now - this.#returningSince < MEMBERSHIP_MS) return false;
    // Another server may have been the master since, and those that know of it are lost.
    if (lapsed.length > 0 && !isVouched) await this.#enter(this.#deps.clock.randomId());
    this.#returningSince = undefined;
    return true;
  }

  /** A step of a renewal. @throws Error also when this member was closed meanwhile: it has left, and goes no further */
  async #step<T>(promise: Promise<T>): Promise<T> {
    const result = await this.#withTimeout(promise);
    if (this.#isClosed) throw new Error('the link is closed');
    return result;
  }

  #withTimeout<T>(promise: Promise<T>): Promise<T> {
    return untilDeadline(promise, LEASE_MS, timeoutError, this.#deps.clock);
  }
}
