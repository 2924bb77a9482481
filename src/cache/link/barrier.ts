// The barrier of a write: waits until no other member can answer with invalidated entries. See ../coherence/README.md, "Write".
import type { Acknowledgements } from './acknowledgements.js';
import type { Clock } from '../clock.js';
import { LEASE_WAIT_MS } from '../coherence/lease.js';
import type { Members, OtherMembers } from './members.js';

interface BarrierDeps {
  clock: Pick<Clock, 'after'>;
  members: Pick<Members, 'others' | 'markLeaseEnded' | 'expel'>;
  acknowledgements: Acknowledgements;
}

/**
 * Returns the members that have renewed their lease without acknowledging: they have missed the message. Members that join
 * later read the current numbers first, so they need no acknowledgement.
 * Undefined: the members could not be read. An empty `call` expects no acknowledgements and waits for the lease.
 */
export async function awaitAcknowledgements(
  { clock, members, acknowledgements }: BarrierDeps,
  call: string,
): Promise<string[] | undefined> {
  const before = call === '' ? NO_MEMBERS : await members.others().catch(() => undefined);
  // A member that renews does so within this time: two readings of the list so far apart show which members have renewed.
  const leaseEnd = wait(clock, LEASE_WAIT_MS);
  if (call === '' || before === undefined) {
    await leaseEnd.done;
    return before && [];
  }
  const ids = [...before.ends.keys()];
  const listIsComplete = wait(clock, before.incompleteForMs);
  await Promise.race([acknowledgements.waitForAll(call, ids), leaseEnd.done]);
  leaseEnd.cancel();
  await listIsComplete.done;
  const missing = acknowledgements.missing(call, ids);
  if (missing.length === 0) return [];
  const after = await members.others().catch(() => undefined);
  const isRenewed = (member: string): boolean => after?.ends.get(member) !== before.ends.get(member);
  for (const [member, end] of before.ends)
    if (missing.includes(member) && !isRenewed(member)) members.markLeaseEnded(member, end);
  return missing.filter((member) => isRenewed(member) && !isExpelled(before.ends.get(member)));
}

const NO_MEMBERS: OtherMembers = { ends: new Map(), incompleteForMs: 0 };

/** The score of an expelled member is negative. */
const isExpelled = (end: string | undefined): boolean => end?.startsWith('-') === true;

/**
 * Expels members and waits for the end of their leases. They cannot renew: they notice, distrust their entries and join
 * again. False: Redis has not confirmed it.
 */
export async function expel({ clock, members }: BarrierDeps, late: readonly string[]): Promise<boolean> {
  try {
    await members.expel(late);
  } catch {
    return false;
  }
  await wait(clock, LEASE_WAIT_MS).done;
  return true;
}

function wait(clock: Pick<Clock, 'after'>, ms: number): { done: Promise<void>; cancel: () => void } {
  if (ms === 0) return { done: Promise.resolve(), cancel: () => undefined };
  let cancel = (): void => undefined;
  const done = new Promise<void>((resolve) => (cancel = clock.after(ms, resolve)));
  return { done, cancel };
}
