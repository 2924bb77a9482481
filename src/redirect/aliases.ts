// Follows HS_ALIAS values from handle to handle.
import { ServiceError } from '../errors.js';
import { type HandleRef, MAX_HANDLE_BYTES } from '../handle/handle.js';
import { type HandleValue, type Selection, createValueFilter } from '../handle/value.js';
import type { RunSteps } from '../http/request-work.js';
import type { FromEntry, Resolution } from '../resolver/loader.js';
import { type RedirectValues, isOfType, textOf } from './values.js';

/** Equals HDLProxy's limit. */
const MAX_ALIASES = 20;

export interface ResolvedHandle {
  handle: HandleRef;
  resolution: Resolution;
}

interface AliasChain {
  /** The last handle, which may be missing or refused by the Handle server. */
  end: ResolvedHandle;
  /** The values of the last record that affect redirects and match the request's selection. */
  values: readonly HandleValue[];
  /** The aliases that led to the last handle, in order. */
  aliases: string[];
  /** The resolution that expires first, and so bounds the lifetime of the response. */
  earliest: FromEntry | undefined;
}

interface AliasDeps {
  /** `type` and `index` can deselect an alias (recording "alias: type=10320/loc hides it"). */
  query: Selection & { followAliases: boolean };
  resolve: (handle: HandleRef) => Promise<Resolution>;
  refOf: (text: string) => HandleRef;
  values: RedirectValues;
  run: RunSteps;
}

/**
 * @throws ServiceError REDIRECT_ALIAS_LOOP for a loop or over 20 aliases, REDIRECT_NOT_FOUND for an overlong
 * alias
 */
export async function followAliases(
  first: ResolvedHandle,
  { query, resolve, refOf, values: { read }, run }: AliasDeps,
): Promise<AliasChain> {
  const isSelected = createValueFilter(query);
  async function valuesOf({ resolution }: ResolvedHandle): Promise<readonly HandleValue[]> {
    if (resolution.kind !== 'entry') return [];
    const { entry } = resolution;
    return (await run(read(entry), entry.values.length)).filter(isSelected);
  }
  function nextIn(values: readonly HandleValue[]): HandleRef | undefined {
    const alias = query.followAliases ? aliasIn(values) : undefined;
    return alias === undefined ? undefined : refOf(alias);
  }

  const aliases: string[] = [];
  const seen = new Set<string>();
  let end = first;
  let values = await valuesOf(end);
  let earliest = earlier(undefined, first.resolution);
  for (let next = nextIn(values); next !== undefined; next = nextIn(values)) {
    aliases.push(end.handle.text);
    seen.add(end.handle.key);
    if (aliases.length > MAX_ALIASES || seen.has(next.key)) throw new ServiceError('REDIRECT_ALIAS_LOOP');
    end = { handle: next, resolution: await resolve(next) };
    values = await valuesOf(end);
    earliest = earlier(earliest, end.resolution);
  }
  return { end, values, aliases, earliest };
}

function aliasIn(values: readonly HandleValue[]): string | undefined {
  const found = values.find((value) => isOfType(value, 'HS_ALIAS'));
  const text = found && textOf(found)?.trim();
  if (text === undefined || text === '') return undefined;
  // Replaces lone surrogates with U+FFFD, as the request to the Handle server does.
  const bytes = Buffer.from(text);
  // Rejects an overlong alias, because the upstream request and every page with its name would be as long.
  if (bytes.length > MAX_HANDLE_BYTES) {
    throw new ServiceError('REDIRECT_NOT_FOUND', { detail: 'Its alias is longer than a handle can be.' });
  }
  return bytes.toString();
}

const earlier = (known: FromEntry | undefined, resolution: Resolution): FromEntry | undefined =>
  resolution.kind !== 'entry' ? known : known === undefined ? resolution : earlierOf(known, resolution);

export const earlierOf = (one: FromEntry, other: FromEntry): FromEntry =>
  expiryOf(other) < expiryOf(one) ? other : one;

/**
 * Returns a sort key that puts stale entries before fresh ones. After a missed invalidation, the `staleAt` of
 * a stale entry may be in the future.
 */
const expiryOf = ({ entry, stale }: FromEntry): number =>
  stale === undefined ? entry.staleAt : entry.staleAt - entry.deleteAt;
