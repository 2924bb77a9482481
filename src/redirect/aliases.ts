// Follows HS_ALIAS values from handle to handle.
import { ServiceError } from '../errors.js';
import { type HandleRef, MAX_HANDLE_BYTES } from '../handle/handle.js';
import { type HandleValue, type Selection, createValueFilter } from '../handle/value.js';
import type { RunSteps } from '../http/request-work.js';
import type { FromEntry, Resolution } from '../resolver/resolution.js';
import { isOfType, redirectValues, textOf } from './values.js';

/** HDLProxy's limit. */
const MAX_ALIASES = 20;

export interface ResolvedHandle {
  handle: HandleRef;
  resolution: Resolution;
}

interface AliasChain {
  /** The last handle: a record, a refusal, or a handle that does not exist. */
  end: ResolvedHandle;
  /** The values of its record that redirects depend on and the request selects. */
  values: readonly HandleValue[];
  /** The aliases before the last handle, in order. */
  aliases: string[];
  /** The resolution that expires first. A response made from several records expires with it. */
  earliest: FromEntry | undefined;
}

interface AliasDeps {
  /** `type` and `index` hide an alias (recording "alias: type=10320/loc hides it"). */
  query: Selection & { followAliases: boolean };
  resolve: (handle: HandleRef) => Promise<Resolution>;
  refOf: (text: string) => HandleRef;
  run: RunSteps;
}

/** @throws ServiceError REDIRECT_ALIAS_LOOP for a loop or more than 20 aliases, REDIRECT_NOT_FOUND for an alias longer than a handle */
export async function followAliases(
  first: ResolvedHandle,
  { query, resolve, refOf, run }: AliasDeps,
): Promise<AliasChain> {
  const isSelected = createValueFilter(query);
  async function valuesOf({ resolution }: ResolvedHandle): Promise<readonly HandleValue[]> {
    if (resolution.kind !== 'entry') return [];
    const { entry } = resolution;
    return (await run(redirectValues(entry), entry.values.length)).filter(isSelected);
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
  // Lone surrogates become U+FFFD, as in the request to the Handle server.
  const bytes = Buffer.from(text);
  // The request to the Handle server and each page that names the alias would be as long.
  if (bytes.length > MAX_HANDLE_BYTES) {
    throw new ServiceError('REDIRECT_NOT_FOUND', { detail: 'Its alias is longer than a handle can be.' });
  }
  return bytes.toString();
}

const earlier = (known: FromEntry | undefined, resolution: Resolution): FromEntry | undefined =>
  resolution.kind !== 'entry' ? known : known === undefined ? resolution : earlierOf(known, resolution);

export const earlierOf = (one: FromEntry, other: FromEntry): FromEntry =>
  expiryOf(other) < expiryOf(one) ? other : one;

/** Stale entries sort before all fresh ones: after a missed invalidation `staleAt` may be in the future. */
const expiryOf = ({ entry, stale }: FromEntry): number =>
  stale === undefined ? entry.staleAt : entry.staleAt - entry.deleteAt;
