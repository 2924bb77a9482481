// One request to the record interface after it was read, and the parts of the server that answer it.
import type { ValueReference } from '../../src/handle/value.js';
import type { Rights } from './rights.js';
import type { RecordStore } from './store.js';

/** A request whose caller is known. */
export interface Call {
  method: string;
  /** The handle as this request spells it. */
  handle: string;
  parameters: URLSearchParams;
  contentType: string | undefined;
  body: Buffer;
  /** Who has logged in, if anybody. */
  identity: ValueReference | undefined;
}

/** What the operations work on. */
export interface World {
  store: RecordStore;
  rights: Rights;
  newSuffix: () => string;
}
