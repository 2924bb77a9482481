// Follows HS_ALIAS values from handle to handle.
import { ServiceError } from '../errors.js';
import { type HandleRef, MAX_HANDLE_BYTES } from '../handle/handle.js';
import type { HandleValue } from '../handle/value.js';
import type { FromEntry, Resolution } from '../resolver/resolution.js';
import type { RedirectCall } from './call.js';
import { isOfType, textOf } from './values.js';

/** Equals HDLProxy's limit. */
const MAX_ALIASES = 20;

export interface ResolvedHandle {
  handle: HandleRef;
  resolution: Resolution;
}

/**
 * Follows the aliases of a record. `type` and `index` can deselect an alias (recording "alias: type=10320/loc hides
 * it"). Returns the last handle, which may be missing or refused by the Handle server, its selected values that
 * affect redirects, the aliases that led to it, and the resolution that expires first.
 *
 * @throws ServiceError REDIRECT_ALIAS_LOOP for a loop or over 20 aliases, REDIRECT_NOT_FOUND for an overlong alias
 */
export async function followAliases(
  first: ResolvedHandle,
  { context: { caller, onlyIfCached, runSteps }, redirects: { host, values }, query }: RedirectCall,
) {
  const { isSelected } = query;
  async function readFrom({ resolution }: ResolvedHandle): Promise<readonly HandleValue[]> {
    if (resolution.kind !== 'entry') return [];
    const all = await values.read(resolution.entry, runSteps);
    return isSelected === undefined ? all : all.filter(isSelected);
  }
  function nextIn(found: readonly HandleValue[]): HandleRef | undefined {
    const alias = query.followAliases ? aliasIn(found) : undefined;
    return alias === undefined ? undefined : host.refOf(alias);
  }

  const { authoritative } = query;
  const aliases: string[] = [];
  const seen = new Set<string>();
  let end = first;
  let found = await readFrom(end);
  let earliest = earlier(undefined, first.resolution);
  for (let next = nextIn(found); next !== undefined; next = nextIn(found)) {
    aliases.push(end.handle.text);
    seen.add(end.handle.key);
    if (aliases.length > MAX_ALIASES || seen.has(next.key)) throw new ServiceError('REDIRECT_ALIAS_LOOP');
    end = {
      handle: next,
      resolution: await host.resolver.resolve(next, { authoritative, onlyIfCached, caller }),
    };
    found = await readFrom(end);
    earliest = earlier(earliest, end.resolution);
  }
  return { end, values: found, aliases, earliest };
}

function aliasIn(values: readonly HandleValue[]): string | undefined {
  const found = values.find((value) => isOfType(value, 'HS_ALIAS'));
  const text = found && textOf(found)?.trim();
  if (text === undefined || text === '') return undefined;
  // Replaces lone surrogates with U+FFFD, as the request to the Handle server does.
  const bytes = Buffer.from(text);
  // Rejects an overlong alias, because the upstream request and every page with its name would be as long.
  if (bytes.length > MAX_HANDLE_BYTES)
    throw new ServiceError('REDIRECT_NOT_FOUND', { detail: 'Its alias is longer than a handle can be.' });
  return bytes.toString();
}

const earlier = (known: FromEntry | undefined, resolution: Resolution): FromEntry | undefined =>
  resolution.kind !== 'entry' ? known : known === undefined ? resolution : earlierOf(known, resolution);

export const earlierOf = (one: FromEntry, other: FromEntry): FromEntry =>
  expiryKey(other) < expiryKey(one) ? other : one;

/** Sorts stale entries before fresh ones: after a missed invalidation, a stale one's `staleAt` may be in the future. */
const expiryKey = ({ entry, stale }: FromEntry): number =>
  stale === undefined ? entry.staleAt : entry.staleAt - entry.deleteAt;
