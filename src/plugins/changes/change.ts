// The JSON line of a change in the audit file, the feed and the webhook.
import type { LoggedChange } from '../../handle/outcome.js';

interface Stamp {
  /** ISO 8601. */
  time: string;
  instance: string;
}

interface ChangeStamp extends Stamp {
  /** Identifies the change, which may be delivered more than once. */
  id: string;
}

/** An identity that anyone can make up is not longer than a real one: index, prefix and a short suffix. */
const MAX_CLAIMED_CHARS = 256;

/** Formats a change. Members are listed explicitly, so that no other property can leak into the line. */
export function formatLine(change: LoggedChange, { id, time, instance }: ChangeStamp): string {
  const { operation, handle, prefix, indexes, identity, isConfirmed, outcome, requestId } = change;
  const by = isConfirmed ? { identity } : { claimedIdentity: identity?.slice(0, MAX_CLAIMED_CHARS) };
  const via = { interface: change.interface, instance, outcome, requestId };
  return toLine({ operation, id, time, handle, prefix, indexes, ...by, ...via });
}

const GAP = 'gap';

/** Formats the line that replaces lost changes; `dropped` is their minimum number. */
export const formatGap = (dropped: number, { time, instance }: Stamp): string =>
  toLine({ operation: GAP, time, instance, dropped });

export const isGap = (line: string): boolean => line.startsWith(`{"operation":"${GAP}"`);

/** Escapes control characters and line separators, because line readers disagree on what ends a line. */
const toLine = (members: object): string =>
  JSON.stringify(members).replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
