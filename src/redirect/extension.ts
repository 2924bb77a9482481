// The contract between redirects and the plugins that add to them.
import type { HandleValue } from '../handle/value.js';
import type { Steps } from '../time-slicer.js';

export type HeaderLine = readonly [name: string, value: string];

/** A record that is answered with a redirect or with its page. */
export interface LinkedRecord {
  handle: string;
  /** The redirect target; undefined if the handle shows its record page. */
  target: string | undefined;
  /** Headers set by the record. */
  headers: readonly HeaderLine[];
}

/** The typed links of a record (RFC 8288). */
export interface RecordLinks {
  onRedirect: () => HeaderLine[];
  onPage: () => HeaderLine[];
  /** Returns the links as a link set (RFC 9264). */
  linkset: (contentType: string) => string;
}

/** Derives the typed links of a record from its selected values. */
export type ReadLinks = (values: readonly HandleValue[], record: LinkedRecord) => Steps<RecordLinks>;

export interface RedirectExtension {
  readonly readLinks?: ReadLinks | undefined;
}

/** The functions of all plugins; lists that are empty cost a redirect nothing. */
export interface Extensions {
  readonly readLinks: readonly ReadLinks[];
}

export const joinExtensions = (all: readonly RedirectExtension[]): Extensions => ({
  readLinks: all.flatMap(({ readLinks = [] }) => readLinks),
});
