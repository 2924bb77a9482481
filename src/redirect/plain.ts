// Redirects that depend only on the URL values of a record, as nearly all do; they are found synchronously.
import type { Entry } from '../cache/entry.js';
import { type HandleRef, handleInUrl, parseHandle } from '../handle/handle.js';
import { representRedirect } from '../html/send.js';
import { ownerOf, readTarget } from '../http/target.js';
import type { Hit } from '../record/prepared-responses.js';
import { type ParsedValues, valuesOf } from '../resolver/parsed-records.js';
import type { FromEntry } from '../resolver/resolution.js';
import type { Resolver } from '../resolver/resolver.js';
import { runToEnd } from '../time-slicer.js';
import type { PrefixRecords } from './locations/other-records.js';
import { type RedirectUrl, toRedirectUrl } from './redirect-url.js';
import type { Signposting } from './signposting.js';
import { type TargetRules, pickUrl } from './target.js';
import { isFamily, isOfType, mayMatter } from './values.js';

export interface PlainDeps {
  target: TargetRules;
  /** Undefined when lists of prefixes are turned off. */
  prefixRecords: Pick<PrefixRecords, 'plainPrefixOf'> | undefined;
  signposting: Signposting | undefined;
}

export type PlainRedirect = Pick<Hit, 'status' | 'made' | 'dependency'>;

/** Longer records are read in slices. */
const MAX_CHARS = 16 * 1024;
/** A match nearly always means that an alias or a location list decides, so such a record is not parsed here. */
const OTHER_TYPES = /10320\/|HS_ALIAS/i;

/**
 * Finds the redirect of a request without parameters. Undefined when an alias, a list, the prefix or the request headers
 * may take part, or when there is no redirect.
 */
export function plainRedirect(
  { entry, stale }: FromEntry,
  { handle, now, deps }: { handle: HandleRef; now: number; deps: PlainDeps },
): PlainRedirect | undefined {
  const { prefixRecords, target, signposting } = deps;
  const dependency = prefixRecords?.plainPrefixOf(handle, now);
  if (stale !== undefined || (prefixRecords !== undefined && dependency === undefined)) return undefined;
  const { to, values = [] } = findUrl(entry, target) ?? {};
  if (to?.ok !== true) return undefined;
  const record = { handle: handle.text, target: to.url, headers: [] };
  const lines = signposting === undefined ? [] : runToEnd(signposting(values, record)).onRedirect();
  return { status: 302, made: representRedirect({ url: to.url, lines }), dependency };
}

/** The URL, and all values of the record. */
function findUrl(entry: Entry, rules: TargetRules): { to: RedirectUrl; values: ParsedValues } | undefined {
  const { kind, values: text } = entry;
  if (kind !== 'found' || text.length > MAX_CHARS || OTHER_TYPES.test(text)) return undefined;
  const values = valuesOf(entry);
  const relevant = values.filter(mayMatter);
  if (!relevant.every((value) => isFamily(value, 'URL') || isOfType(value, '0.TYPE/URL'))) return undefined;
  const chosen = pickUrl(relevant);
  return chosen && { to: toRedirectUrl(chosen.text, rules), values };
}

/** Finds the redirect of a GET by its raw request target, for the read path; undefined unless memory has the record. */
export function createFindRedirect(
  refOf: (text: string) => HandleRef,
  { resolver, ...deps }: PlainDeps & { resolver: Pick<Resolver<unknown>, 'fromMemory'> },
): (target: string, now: number) => Hit | undefined {
  return function findRedirect(target, now) {
    const text = handleIn(target);
    if (text === '') return undefined;
    const handle = refOf(text);
    const found = resolver.fromMemory(handle);
    const plain = found && plainRedirect(found, { handle, now, deps });
    return plain && { target, handle, entry: found.entry, ...plain };
  };
}

/** The handle in a target without query and fragment; empty for any other target. Parameters may select values. */
function handleIn(target: string): string {
  if (/[?#]/.test(target)) return '';
  const { path } = readTarget(target);
  // A path of one segment may be a file of the site.
  if (ownerOf(path) !== 'redirect' || !path.includes('/', 1)) return '';
  const parsed = parseHandle(path.slice(1));
  return parsed.ok ? handleInUrl(parsed.handle) : '';
}
