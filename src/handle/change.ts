// A change of a record, or of the cache by an operator.
import type { WriteOutcome } from './outcome.js';

/** A purge, or a write that may have been executed. It contains neither values nor credentials. */
export interface LoggedChange {
  operation: 'create' | 'update' | 'delete' | 'purge';
  handle?: string;
  /** The purged prefix; empty for all handles. */
  prefix?: string;
  /** Indexes of the written values: undefined for a whole record, `various` if only the body names them. */
  indexes?: readonly number[] | 'various' | undefined;
  /** Identity of the Basic login (`index:handle`); undefined for a session and for anonymous requests. */
  identity?: string | undefined;
  /** Whether the Handle server has accepted the login; otherwise anyone may have claimed the identity. */
  isConfirmed: boolean;
  interface: string;
  outcome: Exclude<WriteOutcome, 'unchanged'>;
  requestId?: string;
}
