// Waits until no other member answers with what a change invalidates. See coherence/README.md, "Write".
import type { Acknowledgements } from './acknowledgements.js';
import type { Clock } from '../clock.js';
import { LEASE_WAIT_MS } from '../coherence/lease.js';
import type { Members, OtherMembers } from './members.js';

export interface BarrierDeps {
  clock: Pick<Clock, 'after'>;
  members: Pick<Members, 'others' | 'markLeaseEnded' | 'expel'>;
  acknowledgements: Acknowledgements;
}

/**
 * Gives the members that have renewed their lease and not acknowledged: they have not received the message. The change
 * has been published, so whoever joins later receives newer ones only: also one that is expelled now, and joins again.
 * Undefined: the members could not be read. `call` is '' where no acknowledgement was asked for.
 */
export async function awaitAcknowledgements(
  { clock, members, acknowledgements }: BarrierDeps,
  call: string,
): Promise<string[] | undefined> {
  const before = call === '' ? NOBODY : await members.others().catch(() => undefined);
  // From here on: two readings tell who has renewed only when they are so far apart.
  const leaseIsOver = wait(clock, LEASE_WAIT_MS);
  if (call === '' || before === undefined) {
    await leaseIsOver.done;
    return before && [];
  }
  const ids = [...before.ends.keys()];
  const listIsComplete = wait(clock, before.incompleteForMs);
  await Promise.race([acknowledgements.waitForAll(call, ids), leaseIsOver.done]);
  leaseIsOver.cancel();
  await listIsComplete.done;
  const missing = acknowledgements.missing(call, ids);
  if (missing.length === 0) return [];
  const after = await members.others().catch(() => undefined);
  const isRenewed = (member: string): boolean => after?.ends.get(member) !== before.ends.get(member);
  for (const [member, end] of before.ends)
    if (missing.includes(member) && !isRenewed(member)) members.markLeaseEnded(member, end);
  return missing.filter((member) => isRenewed(member) && !isExpelled(before.ends.get(member)));
}

const NOBODY: OtherMembers = { ends: new Map(), incompleteForMs: 0 };

/** Its end is negative. */
const isExpelled = (end: string | undefined): boolean => end?.startsWith('-') === true;

/**
 * Expelled, they cannot renew their lease: they find that out, distrust what they keep, and join again. False: Redis could
 * not be told.
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
