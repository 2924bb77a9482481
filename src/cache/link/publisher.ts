// Publishes the changes of this instance through Redis, and runs the barrier until every other instance has applied them.
import type { Acknowledgements } from './acknowledgements.js';
import { type Clock, untilDeadline } from '../clock.js';
import type { Deliver, Published } from '../coherence/hub.js';
import { type Change, isInvalidation } from '../coherence/message.js';
import type { PendingInvalidations } from '../coherence/pending-invalidations.js';
import { awaitAcknowledgements, expel } from './barrier.js';
import type { Channels } from '../redis/namespace.js';
import { publishChange } from '../redis/group-states.js';
import { timeoutError } from '../redis/errors.js';
import type { LinkCommands } from '../redis/commands.js';
import type { Members } from './members.js';

interface PublisherDeps {
  commands: LinkCommands;
  clock: Clock;
  /** This member. */
  id: string;
  members: Members;
  acknowledgements: Acknowledgements;
  deliver: Deliver;
  channels: () => Channels;
  /** The run of the server that is connected; undefined when this member has not entered its era. */
  enteredRun: () => string | undefined;
}

interface AwaitedPublication {
  change: Change;
  call: string;
  /** The run of the server that it was sent to. */
  run: string;
}

/** Timeout for the publication of a change. */
const PUBLISH_TIMEOUT_MS = 1000;
/** With more members than this, a write waits for the lease instead of acknowledgements. */
const MAX_ACKNOWLEDGING = 128;
const REPORT_BATCH = 200;

export class Publisher {
  readonly #deps: PublisherDeps;
  #calls = 0;

  constructor(deps: PublisherDeps) {
    this.#deps = deps;
  }

  /** Undefined: Redis has not confirmed the publication. `count`: approximate number of members. */
  async publish(change: Change, count: number): Promise<Published | undefined> {
    const run = this.#deps.enteredRun();
    if (run === undefined) return undefined;
    const isAwaited = isInvalidation(change) && change.kind !== 'unknown';
    const call = isAwaited && count <= MAX_ACKNOWLEDGING ? this.#newCall() : '';
    try {
      const { seq, isStored } = await this.#send(change, call);
      return {
        seq,
        isStored,
        acknowledged: isAwaited ? this.#runBarrier({ change, call, run }) : Promise.resolve(true),
      };
    } catch (error) {
      this.#deps.acknowledgements.end(call);
      this.#deps.commands.reportFailure(error);
      return undefined;
    }
  }

  /** The publication may be lost with the server that it was sent to, and a former master may be back that lacks it. */
  async #runBarrier(publication: AwaitedPublication): Promise<boolean> {
    const isConfirmed = await this.#awaitMembers(publication);
    return isConfirmed && this.#deps.enteredRun() === publication.run;
  }

  /** A member that renews its lease but has missed the message gets it a second time, and is expelled if it misses that too. */
  async #awaitMembers({ change, call, run }: AwaitedPublication): Promise<boolean> {
    const late = await this.#awaitAcknowledgements(call, run);
    if (late === undefined) return false;
    if (late.length === 0) return true;
    const again = this.#newCall();
    const stillLate = await this.#send(change, again).then(
      () => this.#awaitAcknowledgements(again, run),
      () => late,
    );
    if (stillLate === undefined) return false;
    return stillLate.length === 0 || expel(this.#deps, stillLate);
  }

  #newCall(): string {
    const call = String(++this.#calls);
    this.#deps.acknowledgements.begin(call);
    return call;
  }

  /** Publishes pending invalidations. @throws Error when some of them could not be published, and are pending again */
  async report(pending: PendingInvalidations): Promise<void> {
    for (;;) {
      const taken = pending.take(REPORT_BATCH);
      if (taken.length === 0) return;
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

  /** @throws Error */
  async #send(change: Change, call: string): Promise<{ seq: number; isStored: boolean }> {
    const { commands, channels, clock, id, enteredRun } = this.#deps;
    if (enteredRun() === undefined) throw new Error('the era of this Redis server has not been entered');
    const publication = { change, member: id, call, now: clock.now() };
    return await untilDeadline(
      publishChange(commands, channels(), publication),
      PUBLISH_TIMEOUT_MS,
      timeoutError,
      clock,
    );
  }

  async #awaitAcknowledgements(call: string, run: string): Promise<string[] | undefined> {
    try {
      // The members of another server do not know of the change.
      if (this.#deps.enteredRun() !== run) return undefined;
      return await awaitAcknowledgements(this.#deps, call);
    } finally {
      this.#deps.acknowledgements.end(call);
    }
  }
}
