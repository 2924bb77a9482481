// The write barrier: waits until no other member can serve invalidated entries. See ../coherence/README.md, "Write".
import { type Clock, pause, waitAtMost } from '../../clock.js';
import { LEASE_WAIT_MS } from '../coherence/lease.js';
import type { MemberList } from './member-list.js';

/** Received acknowledgements, by call. They may arrive before the member list is known. */
export class Acknowledgements {
  readonly #calls = new Map<string, { from: Set<string>; onReceived: () => void }>();
  #count = 0;

  begin(): string {
    const call = String(++this.#count);
    this.#calls.set(call, { from: new Set(), onReceived: () => undefined });
    return call;
  }

  end(call: string): void {
    this.#calls.delete(call);
  }

  receive(member: string, calls: readonly string[]): void {
    for (const name of calls) {
      const call = this.#calls.get(name);
      call?.from.add(member);
      call?.onReceived();
    }
  }

  missing(call: string, members: readonly string[]): string[] {
    const from = this.#calls.get(call)?.from;
    return members.filter((member) => !from?.has(member));
  }

  waitForAll(call: string, members: readonly string[]): Promise<void> {
    return new Promise((resolve) => {
      const check = (): void => {
        if (this.missing(call, members).length === 0) resolve();
      };
      const begun = this.#calls.get(call);
      if (begun) begun.onReceived = check;
      check();
    });
  }
}

/**
 * Waits until each member has acknowledged the call or lost its lease. Returns the members that renewed
 * without acknowledging, and so missed the message; undefined if the member list could not be read. Members
 * that join later read the current numbers first, so they need no acknowledgement. With an empty `call`,
 * waits only for the lease time.
 */
export async function awaitAcknowledgements(
  clock: Clock,
  list: MemberList,
  acknowledgements: Acknowledgements,
  call: string,
): Promise<string[] | undefined> {
  const before = call === '' ? undefined : await list.others().catch(() => undefined);
  if (before === undefined) {
    await pause(clock, LEASE_WAIT_MS);
    return call === '' ? [] : undefined;
  }
  const ids = [...before.ends.keys()];
  const all = acknowledgements.waitForAll(call, ids);
  // Each lease is renewed or ends within this time, so the lists before and after show which members renewed.
  const isOver = waitAtMost(all, LEASE_WAIT_MS, clock);
  await Promise.all([isOver, before.incompleteForMs > 0 && pause(clock, before.incompleteForMs)]);
  const missing = acknowledgements.missing(call, ids);
  if (missing.length === 0) return [];
  const after = await list.others().catch(() => undefined);
  const isRenewed = (member: string): boolean => after?.ends.get(member) !== before.ends.get(member);
  for (const [member, end] of before.ends)
    if (missing.includes(member) && !isRenewed(member)) list.markLeaseEnded(member, end);
  return missing.filter((member) => isRenewed(member) && !isExpelled(before.ends.get(member)));
}

const isExpelled = (end: string | undefined): boolean => end?.startsWith('-') === true;

/**
 * Expels members, if there are any, and waits for their leases to end. An expelled member cannot renew,
 * distrusts its entries and joins again. Resolves to false if Redis has not confirmed the expulsion.
 */
export async function expelAndWait(
  clock: Clock,
  list: MemberList,
  late: readonly string[],
): Promise<boolean> {
  if (late.length === 0) return true;
  try {
    await list.expel(late);
  } catch {
    return false;
  }
  await pause(clock, LEASE_WAIT_MS);
  return true;
}
