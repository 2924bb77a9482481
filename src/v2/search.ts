// Which handles of a prefix hold certain values: asked of a reverse look-up service, or found by reading.
import { ServiceError } from '../errors.js';
import { upperAscii } from '../handle/handle.js';
import type { HandleValue } from '../handle/value.js';
import type { Call, V2Deps } from './deps.js';
import { fromUpstream } from './from-upstream.js';
import { type Paging, countHandles, listHandles } from './listing.js';
import { mapLimited } from './map-limited.js';
import { publicValues } from './public-record.js';
import { matchesPattern } from './pattern.js';

/** Type and pattern; the type `handle` stands for the suffix. */
export type Condition = readonly [type: string, pattern: string];

export interface Search extends Paging {
  prefix: string;
  conditions: readonly Condition[];
}

/** More than any answer can hold; a service that gives so many has more. */
const ALL = 1_000_000;

/** All that match, or an error: never a part of them, and never what does not match. */
export async function searchHandles(deps: V2Deps, call: Call, search: Search): Promise<string[]> {
  const { reverseLookup } = deps;
  if (reverseLookup === undefined) return paged(await readThrough(deps, call, search), search);
  const { limit, page } = search;
  // Services count pages from 0 or from 1; the first page, as long as needed, is the same for both.
  const wanted = limit === 0 ? ALL : limit * page;
  const { authorization } = call.req.headers;
  const found = await reverseLookup({ ...search, limit: wanted, authorization });
  if (found === 'unauthorized') throw new ServiceError('V2_LOGIN_NEEDED', { detail: 'for a search' });
  if (found === 'forbidden') throw new ServiceError('V2_FORBIDDEN', { detail: 'a search' });
  if (found.length >= ALL) throw new ServiceError('V2_NOT_SUPPORTED', { detail: 'give a limit' });
  return paged(found.slice(0, wanted), search);
}

const paged = (handles: readonly string[], { limit, page }: Paging): string[] =>
  limit === 0 ? [...handles] : handles.slice((page - 1) * limit, page * limit);

/** The list with the caller's rights, each record through the cache. One that fails fails the search. */
async function readThrough(deps: V2Deps, call: Call, { prefix, conditions }: Search): Promise<string[]> {
  const { concurrency, maxHandles } = deps.settings.search;
  const count = await countHandles(deps, call, prefix);
  requireFew(count, maxHandles);
  const handles = await listHandles(deps, call, { prefix, limit: 0, page: 1 });
  requireFew(handles.length, maxHandles);
  const matching = await mapLimited(handles, concurrency, async (handle) => {
    const values = await publicValues(deps, handle);
    return values !== undefined && conditions.every((condition) => holdsFor(condition, handle, values));
  });
  return handles.filter((_handle, at) => matching[at]);
}

function requireFew(count: number, maxHandles: number): void {
  if (count <= maxHandles) return;
  const detail =
    `the prefix has ${count} handles, and at most ${maxHandles} are read for one search;` +
    ' the operator can set reverseLookup.url, or raise v2.search.maxHandles';
  throw new ServiceError('V2_NOT_SUPPORTED', { detail });
}

function holdsFor([type, pattern]: Condition, handle: string, values: readonly HandleValue[]): boolean {
  if (type === 'handle') {
    const suffix = handle.slice(handle.indexOf('/') + 1);
    return matchesPattern(upperAscii(pattern), upperAscii(suffix));
  }
  return fromUpstream(values).some(
    (value) =>
      value.type === type &&
      typeof value.parsed_data === 'string' &&
      matchesPattern(pattern, value.parsed_data),
  );
}
