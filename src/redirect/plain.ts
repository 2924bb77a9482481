// Synchronously finds redirects that depend only on a record's URL values, as nearly all do.
import type { Entry } from '../cache/entry.js';
import type { HandleRef } from '../handle/handle.js';
import { representRedirect } from '../html/send.js';
import type { Hit } from '../http/prepared-responses.js';
import { type ParsedValues, valuesOf } from '../resolver/parsed-records.js';
import type { FromEntry } from '../resolver/loader.js';
import { runToEnd } from '../time-slicer.js';
import type { Extensions, HeaderLine, LinkedRecord } from './extension.js';
import { type RedirectUrl, type UrlRules, toRedirectUrl } from './redirect-url.js';
import { plainTarget } from './target.js';
import { type RedirectValues, isFamily, isOfType } from './values.js';

export interface PlainDeps {
  urls: UrlRules;
  extensions: Extensions;
  values: RedirectValues;
}

type PlainRedirect = Pick<Hit, 'status' | 'made' | 'dependency'>;

/** Maximum record length here; longer records are parsed in slices elsewhere. */
const MAX_CHARS = 16 * 1024;

/**
 * Finds the redirect for a request without parameters. Returns undefined if the record has no valid redirect
 * target, or if an alias, a list, the prefix or request headers may affect the result.
 */
export function plainRedirect(
  { entry, stale }: FromEntry,
  { handle, now, deps }: { handle: HandleRef; now: number; deps: PlainDeps },
): PlainRedirect | undefined {
  const { extensions } = deps;
  const { dependencyOf } = extensions;
  const dependency = dependencyOf?.(handle, now);
  if (stale !== undefined || (dependencyOf !== undefined && dependency === undefined)) return undefined;
  const { to, values = [] } = findUrl(entry, deps) ?? {};
  if (to?.ok !== true) return undefined;
  const lines = linkLines(extensions, values, { handle: handle.text, target: to.url, headers: [] });
  return { status: 302, made: representRedirect({ url: to.url, lines }), dependency };
}

const linkLines = ({ readLinks }: Extensions, values: ParsedValues, record: LinkedRecord): HeaderLine[] =>
  readLinks.flatMap((read) => runToEnd(read(values, record)).onRedirect());

/** Returns the redirect URL and all values of the record. */
function findUrl(
  entry: Entry,
  { urls, values: { mayMatter }, extensions: { patterns } }: PlainDeps,
): { to: RedirectUrl; values: ParsedValues } | undefined {
  const { kind, values: text } = entry;
  if (kind !== 'found' || text.length > MAX_CHARS) return undefined;
  // A matching record is not parsed here. The patterns only save time: the types decide.
  if (patterns.some((pattern) => pattern.test(text))) return undefined;
  const values = valuesOf(entry);
  const relevant = values.filter(mayMatter);
  if (!relevant.every((value) => isFamily(value, 'URL') || isOfType(value, '0.TYPE/URL'))) return undefined;
  const { chosen } = plainTarget(relevant);
  return chosen && { to: toRedirectUrl(chosen.text, urls), values };
}
