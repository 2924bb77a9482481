// The link of an instance to the others on one Redis: messages, lease, membership. See coherence/README.md.
import { Acknowledgements, createAcknowledger } from './acknowledgements.js';
import { type Clock, oneAtATime } from '../clock.js';
import { LEASE_MS, Lease, MEMBERSHIP_MS, RENEW_EVERY_MS } from '../coherence/lease.js';
import type { Membership, Published } from '../coherence/hub.js';
import type { Change, Message } from '../coherence/message.js';
import type { PendingInvalidations } from '../coherence/pending-invalidations.js';
import { untilDeadline } from '../deadline.js';
import { readBans, readNumbers } from '../redis/group-states.js';
import { timeoutError } from '../redis/errors.js';
import type { LinkCommands } from '../redis/commands.js';
import { Members, type Renewal } from './members.js';
import { Publisher } from './publisher.js';
import { Receiver } from './receiver.js';
import { Subscriptions } from './subscriptions.js';

export interface RedisLinkDeps {
  commands: LinkCommands;
  clock: Clock;
  pending: PendingInvalidations;
  /** Applies a message in every process of this machine. */
  deliver: (message: Message) => Promise<void>;
  /** Called after each renewal, which may have failed. */
  onRenewed: () => void;
}

/** After so many renewals that failed in a row the connections for messages are opened anew. */
const MAX_FAILURES = 4;
/** With more groups than this the whole cache is distrusted, in one message. */
const MAX_DISTRUSTED = 64;

export class RedisLink implements Membership {
  readonly id: string;
  readonly #deps: RedisLinkDeps;
  readonly #lease: Lease;
  readonly #members: Members;
  readonly #receiver: Receiver;
  readonly #subscriptions: Subscriptions;
  readonly #publisher: Publisher;
  readonly #awaitingReturn = new Set<(isBack: boolean) => void>();
  readonly #lapsed = new Set<string>();
  /** Whether the numbers were read after the subscription. */
  #hasRead = false;
  #count = 1;
  #failures = 0;
  /** Moments on the monotonic clock. */
  #steadySince = Infinity;
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
      isLapsed: (member) => this.#lapsed.has(member),
      onMissedBans: () => {
        this.#subscriptions.close();
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

  /** Does now what is done every half second. */
  readonly renewNow = oneAtATime(async () => {
    const { commands } = this.#deps;
    try {
      if (!commands.isConnected()) return;
      if (!this.#hasRead || !this.#subscriptions.isComplete()) await this.#establish();
      await this.#renew();
      this.#failures = 0;
    } catch (error) {
      commands.reportFailure(error);
      if (++this.#failures % MAX_FAILURES === 0) {
        this.#subscriptions.close();
        commands.rediscover();
      }
    } finally {
      this.#deps.onRenewed();
    }
  });

  /** A fence is raised under a lease only, also when the reply comes late: how long it is known to others counts from a renewal. */
  async publish(change: Change): Promise<Published | undefined> {
    const isLeased = (): boolean => change.kind !== 'raise' || this.#lease.leftMs() > 0;
    if (this.#isClosed || !isLeased()) return undefined;
    const published = await this.#publisher.publish(change, this.#count);
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

  /** Nobody need wait for this member any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelTick();
    this.#lease.end();
    if (this.#deps.commands.isConnected()) await this.#inTime(this.#members.leave()).catch(() => undefined);
    this.#subscriptions.close();
  }

  #schedule(): void {
    this.#cancelTick = this.#deps.clock.after(RENEW_EVERY_MS, () => {
      if (this.#isClosed) return;
      this.#schedule();
      void this.renewNow();
    });
  }

  /**
   * Subscribes and joins first, and reads the numbers after: what is published in between is received, and its sender waits
   * for this member.
   */
  async #establish(): Promise<void> {
    const { commands, deliver, pending } = this.#deps;
    this.#hasRead = false;
    await this.#inTime(this.#subscriptions.open());
    if (this.#lease.leftMs() === 0) {
      await this.#publisher.report(pending);
      await this.#inTime(this.#members.renew({ joins: true, removes: false }));
    }
    const reading = Promise.all([readNumbers(commands), readBans(commands)]);
    const [numbers, bans] = await this.#inTime(reading);
    const changed = [...numbers].filter(([group, seq]) => !this.#receiver.numbers.adopt(group, seq));
    const groups = changed.map(([group]) => group).filter((group) => group !== 'bans');
    if (groups.length > MAX_DISTRUSTED) await deliver({ kind: 'distrust' });
    else await Promise.all(groups.map((group) => deliver({ kind: 'distrust', group })));
    await deliver(bans);
    this.#hasRead = true;
  }

  async #renew(): Promise<void> {
    // Until it is reported, no renewal counts as a return.
    await this.#publisher.report(this.#deps.pending);
    const asked = this.#lease.now();
    const removes = this.#lease.leftMs() > 0 && asked.monotonic - this.#steadySince > MEMBERSHIP_MS;
    const asking = [this.#subscriptions.ping(), this.#members.renew({ joins: false, removes })] as const;
    const [, renewed] = await this.#inTime(Promise.all(asking));
    if (renewed.was === 'absent') {
      await this.#startAnew();
      return;
    }
    if (renewed.was === 'late') throw new Error('a renewal reached Redis too late');
    this.#count = renewed.count;
    await this.#endFencesOf(renewed);
    if (await this.#isBack(renewed)) this.#lease.renew(asked);
    for (const settle of this.#awaitingReturn) settle(true);
  }

  /** Expelled, as a message is missing here; or the list of members was lost. It joins again with the next renewal. */
  async #startAnew(): Promise<void> {
    this.#lease.end();
    this.#subscriptions.close();
    await this.#deps.deliver({ kind: 'distrust' });
  }

  /** The writer of a fence whose membership has ended cannot lower it. */
  async #endFencesOf({ lapsed }: Renewal): Promise<void> {
    this.#receiver.dropExpiredFences();
    for (const member of lapsed) {
      if (this.#lapsed.has(member)) continue;
      this.#lapsed.add(member);
      // In Redis as well: by all that know of it, as each of them may be the only one.
      for (const key of await this.#receiver.softenFencedKeys(member))
        this.#deps.pending.add({ kind: 'soften', key });
    }
    for (const member of this.#lapsed) if (!lapsed.includes(member)) this.#lapsed.delete(member);
  }

  /** After a lease that has ended: members whose membership has ended too may have changes to report. */
  async #isBack({ lapsed, listAgeMs }: Renewal): Promise<boolean> {
    if (this.#lease.leftMs() > 0) return true;
    const now = this.#deps.clock.monotonic();
    if (this.#returningSince === undefined) {
      this.#returningSince = now;
      await this.#receiver.softenFencedKeys();
    }
    // A list that was begun with one master of a cluster lacks those that were members; other masters kept their entries.
    const isIncomplete = this.#deps.commands.isCluster && listAgeMs < MEMBERSHIP_MS;
    const mayReport = lapsed.length > 0 || isIncomplete;
    if (mayReport && now - this.#returningSince < MEMBERSHIP_MS) return false;
    this.#returningSince = undefined;
    this.#steadySince = now;
    return true;
  }

  #inTime<T>(promise: Promise<T>): Promise<T> {
    return untilDeadline(promise, LEASE_MS, timeoutError, this.#deps.clock);
  }
}
