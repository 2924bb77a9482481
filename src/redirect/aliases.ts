// Follows HS_ALIAS values from handle to handle.
import { ServiceError } from '../errors.js';
import type { FromEntry, Resolution } from '../resolver/resolution.js';
import { MAX_HANDLE_BYTES } from '../handle/handle.js';
import type { HandleValue } from '../handle/value.js';
import type { Entry } from '../cache/entry.js';
import { isOfType, textOf } from './values.js';

/** HDLProxy's limit. */
const MAX_ALIASES = 20;

export interface ResolvedHandle<Result extends Resolution = Resolution> {
  handle: string;
  resolution: Result;
}

export interface AliasChain {
  /** The last handle: a record, a refusal, or a handle that does not exist. */
  end: ResolvedHandle;
  /** The aliases before it, in order. */
  aliases: string[];
  /** The resolution that expires first. A response made from several records expires with it. */
  earliest: FromEntry | undefined;
}

export interface AliasDeps {
  resolve: (handle: string) => Promise<Resolution>;
  keyOf: (handle: string) => string;
  /** `type` and `index` hide an alias (recording "alias: type=10320/loc hides it"). */
  isSelected: (value: HandleValue) => boolean;
  valuesOf: (entry: Entry) => readonly HandleValue[] | Promise<readonly HandleValue[]>;
}

/** @throws ServiceError REDIRECT_ALIAS_LOOP for a loop and for more than 20 aliases, REDIRECT_NOT_FOUND for one that is too long */
export async function followAliases(first: ResolvedHandle, deps: AliasDeps): Promise<AliasChain> {
  const { resolve, keyOf } = deps;
  const aliases: string[] = [];
  const seen = new Set<string>();
  let end = first;
  let earliest = earlier(undefined, first.resolution);
  for (let next = await aliasIn(end, deps); next !== undefined; next = await aliasIn(end, deps)) {
    aliases.push(end.handle);
    seen.add(keyOf(end.handle));
    if (aliases.length > MAX_ALIASES || seen.has(keyOf(next))) throw new ServiceError('REDIRECT_ALIAS_LOOP');
    end = { handle: next, resolution: await resolve(next) };
    earliest = earlier(earliest, end.resolution);
  }
  return { end, aliases, earliest };
}

async function aliasIn(
  { resolution }: ResolvedHandle,
  { isSelected, valuesOf }: AliasDeps,
): Promise<string | undefined> {
  if (resolution.kind !== 'entry') return undefined;
  const values = await valuesOf(resolution.entry);
  const found = values.find((value) => isOfType(value, 'HS_ALIAS') && isSelected(value));
  const text = found && textOf(found)?.trim();
  if (text === undefined || text === '') return undefined;
  // Lone surrogates become U+FFFD, as in the request to the Handle server.
  const bytes = Buffer.from(text);
  // It would be as long in the request to the Handle server, and on each page that names it.
  if (bytes.length > MAX_HANDLE_BYTES) {
    throw new ServiceError('REDIRECT_NOT_FOUND', { detail: 'Its alias is longer than a handle can be.' });
  }
  return bytes.toString();
}

const earlier = (known: FromEntry | undefined, resolution: Resolution): FromEntry | undefined =>
  resolution.kind !== 'entry' ? known : known === undefined ? resolution : earlierOf(known, resolution);

export const earlierOf = (one: FromEntry, other: FromEntry): FromEntry =>
  expiryOf(other) < expiryOf(one) ? other : one;

/** An entry may be stale before its time: it was invalidated, or may have missed an invalidation. */
const expiryOf = ({ entry, stale }: FromEntry): number =>
  stale === undefined ? entry.staleAt : entry.staleAt - entry.deleteAt;
