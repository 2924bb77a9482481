// A change made through this proxy, and its line of JSON in the audit file, the feed and the webhook.
import type { WriteOutcome } from '../handle/outcome.js';

/** A write that was or may have been executed, or a purge. It has neither values nor credentials. */
export interface RecordedChange {
  operation: 'create' | 'update' | 'delete' | 'purge';
  handle?: string;
  /** Prefix of a purge; empty for all handles. */
  prefix?: string;
  /** Indexes of the written values: undefined for a whole record, `various` if only the body names them. */
  indexes?: readonly number[] | 'various' | undefined;
  /** The login without its password; undefined without a login or with a session. */
  identity?: string | undefined;
  interface: string;
  outcome: Exclude<WriteOutcome, 'unchanged'>;
  requestId?: string;
}

/** Records changes in their order. Never throws; resolves before the client may get its reply. */
export type RecordChanges = (changes: readonly RecordedChange[]) => Promise<void>;

export interface Stamp {
  /** Identifies the change, which may be delivered more than once. */
  id: string;
  /** ISO 8601. */
  time: string;
  instance: string;
}

/** Formats a change. It names every member, so that no other property of an object reaches a line. */
export function formatChange(change: RecordedChange, { id, time, instance }: Stamp): string {
  const { operation, handle, prefix, indexes, identity, outcome, requestId } = change;
  const via = { interface: change.interface, instance, outcome, requestId };
  return toLine({ operation, id, time, handle, prefix, indexes, identity, ...via });
}

const GAP = 'gap';

/** Formats the line that stands for lost changes. `dropped`: their minimum number. */
export const formatGap = (dropped: number, { time, instance }: Omit<Stamp, 'id'>): string =>
  toLine({ operation: GAP, time, instance, dropped });

export const isGap = (line: string): boolean => line.startsWith(`{"operation":"${GAP}"`);

/** Escapes all control characters and line separators, because readers of lines differ in what ends a line. */
const toLine = (members: object): string =>
  JSON.stringify(members).replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
