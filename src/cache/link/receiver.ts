// Receives the changes of other members: checks their numbers, applies and acknowledges them.
import type { Clock } from '../clock.js';
import { Fences } from '../coherence/fences.js';
import { type Group, GroupNumbers, groupOf } from '../coherence/groups.js';
import type { Deliver } from '../coherence/hub.js';
import { type Change, type ReceivedMessage, parseMessage } from '../coherence/message.js';

interface ReceiverDeps {
  /** This member. */
  id: string;
  clock: Pick<Clock, 'now'>;
  deliver: Deliver;
  acknowledge: (member: string, call: string) => void;
  /** Called when bans were missed and must be read again. */
  onMissedBans: () => void;
}

export class Receiver {
  readonly numbers = new GroupNumbers();
  readonly #deps: ReceiverDeps;
  /** Fences of members that have not lapsed: when a writer is lost, the entries under its fences become stale. */
  readonly #fences = new Fences();

  constructor(deps: ReceiverDeps) {
    this.#deps = deps;
  }

  receive(text: string): void {
    const received = parseMessage(text);
    if (received === undefined) return;
    const { change, seq } = received;
    const group: Group = change.kind === 'ban' ? 'bans' : groupOf(change.key);
    if (!this.numbers.advance(group, seq)) this.#recover(group);
    this.#trackFence(change);
    // The hub applies the changes of this member.
    if (received.member !== this.#deps.id) this.#apply(received);
  }

  /** Makes the entries under all fences stale. */
  softenFencedKeys(): void {
    this.#soften(this.#fences.keys());
  }

  /** Makes the entries under the fences of a lapsed member stale; returns their keys. A fence that arrives later counts next time. */
  removeFencesOf(member: string): string[] {
    const keys = this.#fences.removeOf(member);
    this.#soften(keys);
    return keys;
  }

  #soften(keys: readonly string[]): void {
    for (const key of keys) this.#deps.deliver({ kind: 'soften', key });
  }

  /** Memory makes the entries under expired fences stale with its own copy of the fences. */
  dropExpiredFences(): void {
    const now = this.#deps.clock.now();
    for (
      let key = this.#fences.firstExpiredKey(now);
      key !== undefined;
      key = this.#fences.firstExpiredKey(now)
    )
      this.#fences.removeExpired(key, now);
  }

  #apply({ change, member, call }: ReceivedMessage): void {
    this.#deps.deliver(change);
    if (call !== '') this.#deps.acknowledge(member, call);
  }

  #recover(group: Group): void {
    if (group === 'bans') this.#deps.onMissedBans();
    else this.#deps.deliver({ kind: 'distrust', group });
  }

  #trackFence(change: Change): void {
    if (change.kind === 'raise' || change.kind === 'unknown')
      this.#fences.raise(change.key, change.fence, this.#deps.clock.now() + change.lifeMs);
    else if (change.kind === 'changed' || change.kind === 'unchanged')
      this.#fences.lower(change.key, change.fence);
  }
}
