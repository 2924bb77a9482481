// Receives the changes of other members: checks their numbers, applies them, acknowledges them.
import type { Clock } from '../clock.js';
import { Fences } from '../coherence/fences.js';
import { type Group, GroupNumbers, groupOf } from '../coherence/groups.js';
import { type Change, type Message, type ReceivedMessage, parseMessage } from '../coherence/message.js';

export interface ReceiverDeps {
  /** This member. */
  id: string;
  clock: Pick<Clock, 'now'>;
  /** Applies a message in every process of this machine. */
  deliver: (message: Message) => Promise<void>;
  acknowledge: (member: string, call: string) => void;
  /** Whether the membership of the member has ended. */
  isLapsed: (member: string) => boolean;
  /** Bans were missed: they have to be read again. */
  onMissedBans: () => void;
}

export class Receiver {
  readonly numbers = new GroupNumbers();
  readonly #deps: ReceiverDeps;
  /** Raised by any member: a fence whose writer is lost leaves its entries stale. */
  readonly #fences = new Fences();

  constructor(deps: ReceiverDeps) {
    this.#deps = deps;
  }

  receive(text: string): void {
    const received = parseMessage(text);
    if (received === undefined) return;
    const { change, seq } = received;
    const group: Group = change.kind === 'ban' ? 'bans' : groupOf(change.key);
    if (!this.numbers.advance(group, seq)) this.#missed(group);
    this.#noteFence(change);
    // What this member publishes it applies itself.
    if (received.member !== this.#deps.id) void this.#apply(received);
  }

  /** Makes stale what is kept under the fences of a member, or of all; gives the keys. */
  async softenFencedKeys(member?: string): Promise<string[]> {
    const keys = this.#fences.keysOf(member);
    await Promise.all(keys.map((key) => this.#deps.deliver({ kind: 'soften', key })));
    return keys;
  }

  /** Drops the fences that have expired: each process does the rest with its own copy. */
  dropExpiredFences(): void {
    const now = this.#deps.clock.now();
    for (
      let key = this.#fences.firstExpiredKey(now);
      key !== undefined;
      key = this.#fences.firstExpiredKey(now)
    )
      this.#fences.removeExpired(key, now);
  }

  async #apply({ change, member, call }: ReceivedMessage): Promise<void> {
    await this.#deps.deliver(change);
    // Raised too late: its writer may have been given up already.
    if (change.kind === 'raise' && this.#deps.isLapsed(member))
      await this.#deps.deliver({ kind: 'soften', key: change.key });
    if (call !== '') this.#deps.acknowledge(member, call);
  }

  #missed(group: Group): void {
    if (group === 'bans') this.#deps.onMissedBans();
    else void this.#deps.deliver({ kind: 'distrust', group });
  }

  #noteFence(change: Change): void {
    if (change.kind === 'raise' || change.kind === 'unknown')
      this.#fences.raise(change.key, change.fence, this.#deps.clock.now() + change.lifeMs);
    else if (change.kind === 'changed' || change.kind === 'unchanged')
      this.#fences.lower(change.key, change.fence);
  }
}
