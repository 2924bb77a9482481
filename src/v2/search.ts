// Lists and searches the handles of a prefix: upstream list, reverse look-up service, patterns.
import { ServiceError } from '../errors.js';
import { upperAscii } from '../handle/handle.js';
import type { HandleValue } from '../handle/value.js';
import type { Steps } from '../time-slicer.js';
import type { RecordAnswer } from '../upstream/reply.js';
import type { V2Call, V2Deps } from './deps.js';
import { readPublic } from './read.js';
import { refusalError } from './refusal.js';
import { parsedDataOf } from './translation/translate.js';
import { isHidden } from './translation/value.js';

export interface Paging {
  /** 0: no limit. */
  limit: number;
  /** From 1. */
  page: number;
}

/** The caller needs the right to list the prefix. */
export async function listHandles(
  { records }: Pick<V2Deps, 'records'>,
  { login }: V2Call,
  { prefix, limit, page }: Paging & { prefix: string },
): Promise<string[]> {
  const paging = limit === 0 ? {} : { page: page - 1, pageSize: limit };
  const answer = await records.list(prefix, { authorization: login.authorization, ...paging });
  const { handles } = assertListed(answer).members;
  const isList = Array.isArray(handles) && handles.every((handle) => typeof handle === 'string');
  if (!isList)
    throw new ServiceError('UPSTREAM_BAD_ANSWER', { diagnosis: { cause: 'a list without handles' } });
  return handles;
}

/** A page of size 0 has the total count and no handles. */
async function countHandles(
  { records }: Pick<V2Deps, 'records'>,
  { login }: V2Call,
  prefix: string,
): Promise<number> {
  const { authorization } = login;
  const answer = await records.list(prefix, { authorization, page: 0, pageSize: 0 });
  // A text of digits (recording "list: page=0&pageSize=3").
  const { totalCount } = assertListed(answer).members;
  const count = typeof totalCount === 'string' ? Number(totalCount) : totalCount;
  if (typeof count === 'number' && Number.isInteger(count)) return count;
  throw new ServiceError('UPSTREAM_BAD_ANSWER', { diagnosis: { cause: 'a list without totalCount' } });
}

function assertListed(answer: RecordAnswer): RecordAnswer {
  if (answer.status === 200) return answer;
  throw refusalError(answer, 'read');
}

/** Type and pattern; the type `handle` is the suffix. */
export type Condition = readonly [type: string, pattern: string];

interface HandleSearch extends Paging {
  prefix: string;
  conditions: readonly Condition[];
}

/** A service that returns this many may have more. */
const MAX_RESULTS = 1_000_000;

/** All matches or an error, never a partial result. */
export async function searchHandles(deps: V2Deps, call: V2Call, search: HandleSearch): Promise<string[]> {
  const { reverseLookup } = deps;
  if (reverseLookup === undefined) return pageOf(await scanPrefix(deps, call, search), search);
  const { limit, page } = search;
  // Services number pages from 0 or from 1: one first page that is long enough is the same for both.
  const size = limit === 0 ? MAX_RESULTS : limit * page;
  const { authorization } = call.req.headers;
  const found = await reverseLookup({ ...search, limit: size, authorization });
  if (found === 'unauthorized')
    throw new ServiceError('V2_LOGIN_NEEDED', { detail: 'the reverse look-up service rejects it' });
  if (found === 'forbidden')
    throw new ServiceError('V2_FORBIDDEN', { detail: 'the reverse look-up service rejects it' });
  if (found.length >= MAX_RESULTS) throw new ServiceError('V2_NOT_SUPPORTED', { detail: 'give a limit' });
  return pageOf(found.slice(0, size), search);
}

const pageOf = (handles: readonly string[], { limit, page }: Paging): string[] =>
  limit === 0 ? [...handles] : handles.slice((page - 1) * limit, page * limit);

/** Lists with the caller's rights, and reads each public record through the cache. One failure fails the search. */
async function scanPrefix(
  deps: V2Deps,
  call: V2Call,
  { prefix, conditions }: HandleSearch,
): Promise<string[]> {
  const { concurrency, maxHandles } = deps.settings.search;
  assertScannable(await countHandles(deps, call, prefix), maxHandles);
  const handles = await listHandles(deps, call, { prefix, limit: 0, page: 1 });
  assertScannable(handles.length, maxHandles);
  const criteria = readCriteria(conditions);
  const matching = await mapLimited(handles, concurrency, async (handle) => {
    const values = await readPublic(deps, handle);
    return values !== undefined && deps.run(meetsAll(criteria, handle, values), Infinity);
  });
  return handles.filter((_handle, at) => matching[at]);
}

function assertScannable(count: number, maxHandles: number): void {
  if (count <= maxHandles) return;
  const detail =
    `the prefix has ${count} handles, and at most ${maxHandles} are read for one search;` +
    ' the operator can set reverseLookup.url, or raise v2.search.maxHandles';
  throw new ServiceError('V2_NOT_SUPPORTED', { detail });
}

/** The literal texts between the stars of a pattern. */
type Pattern = readonly string[];

interface Criteria {
  suffixes: readonly Pattern[];
  byType: ReadonlyMap<string, readonly Pattern[]>;
}

function readCriteria(conditions: readonly Condition[]): Criteria {
  const suffixes: Pattern[] = [];
  const byType = new Map<string, Pattern[]>();
  for (const [type, pattern] of conditions) {
    if (type === 'handle') suffixes.push(splitPattern(upperAscii(pattern)));
    else byType.set(type, [...(byType.get(type) ?? []), splitPattern(pattern)]);
  }
  return { suffixes, byType };
}

/** Each value is translated once, whatever the number of conditions. */
function* meetsAll(
  { suffixes, byType }: Criteria,
  handle: string,
  values: readonly HandleValue[],
): Steps<boolean> {
  const suffix = upperAscii(handle.slice(handle.indexOf('/') + 1));
  if (!suffixes.every((pattern) => matchesPattern(pattern, suffix))) return false;
  const unmet = new Map(byType);
  for (const value of values) {
    const patterns = unmet.get(value.type);
    if (patterns === undefined || isHidden(value)) continue;
    yield;
    const text = parsedDataOf(value);
    if (typeof text !== 'string') continue;
    const left = patterns.filter((pattern) => !matchesPattern(pattern, text));
    if (left.length === 0) unmet.delete(value.type);
    else unmet.set(value.type, left);
  }
  return unmet.size === 0;
}

/** `*` matches any text, `~` escapes the next character. Linear time, without backtracking. */
function matchesPattern([first = '', ...rest]: Pattern, text: string): boolean {
  const last = rest.at(-1);
  if (last === undefined) return text === first;
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) {
    return false;
  }
  const end = text.length - last.length;
  let at = first.length;
  for (const part of rest.slice(0, -1)) {
    const found = text.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

function splitPattern(pattern: string): Pattern {
  const parts: string[] = [];
  let part = '';
  for (const token of pattern.match(/~[^]|[^]/gu) ?? []) {
    if (token === '*') {
      parts.push(part);
      part = '';
    } else part += token.length > 1 && token.startsWith('~') ? token.slice(1) : token;
  }
  return [...parts, part];
}

/** Maps with bounded concurrency, in order. After the first failure no further work starts. */
export async function mapLimited<T, R>(
  items: readonly T[],
  concurrency: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const queue = items.entries();
  let hasFailed = false;
  const worker = async (): Promise<void> => {
    for (const [at, item] of queue) {
      if (hasFailed) return;
      results[at] = await work(item);
    }
  };
  const workers = Array.from({ length: Math.min(concurrency, items.length) }, worker);
  await Promise.all(workers).catch((failure: unknown) => {
    hasFailed = true;
    throw failure;
  });
  return results;
}
