// GET of a collection: all prefixes, the handles under a prefix, or search results. Handles come from the
// upstream list, the reverse lookup service, or a pattern scan.
import { ServiceError } from '../errors.js';
import { matchesInSequence, upperAscii } from '../handle/handle.js';
import { charsIn, writeTexts } from '../handle/json-texts.js';
import { writeJson } from '../handle/json.js';
import type { ListPage } from '../handle/outcome.js';
import type { HandleValue } from '../handle/value.js';
import { negotiatorOf } from '../http/accept.js';
import { JSON_TYPE, NO_STORE } from '../http/reply.js';
import { endWithClient } from '../http/request-work.js';
import { type RunSteps, SMALL_CHARS, type Steps, flatMapGroups, mapLongInSteps } from '../time-slicer.js';
import type { ListAnswer } from '../upstream/reply.js';
import { type V2Request, type V2Call, originFor, refusalError, sendV2 } from './call.js';
import { assertLogin, readPublic } from './read.js';
import { isHidden } from './translation/data.js';
import { decodeValue, parsedTextOf, visibleValues, writeV2Value } from './translation/record.js';

const DEFAULT_LIMIT = 1000;
/** Maximum search conditions; ePIC client forms send at most a handful. */
const MAX_CONDITIONS = 32;

export async function sendPrefixes(call: V2Request | V2Call): Promise<void> {
  if ('login' in call) await checkLogin(call);
  const { prefixes } = call.v2.config.v2;
  await sendNames(call, prefixes, { byDefault: 'text', nameOf: (prefix) => `${prefix}/` });
}

/**
 * Verifies the password with an extra read, because the call itself sends no login to the Handle server. The main server checks
 * an identity whose own server takes no logins: anyone could make one up.
 */
function checkLogin(call: V2Call): Promise<void> {
  const { refOf, upstreams } = call.v2.host;
  const { identity, authorization } = call.login;
  const handle = refOf(identity.handle);
  const origin = originFor(call, handle);
  const { main } = upstreams;
  if (origin.server?.readOnly === false || main?.readOnly !== false) return assertLogin(origin.get);
  const login = { authorization, caller: origin.caller };
  return assertLogin((options) => main.records.get(handle, { ...options, ...login }));
}

export async function listCollection(call: V2Call, prefix: string): Promise<void> {
  const { req, context } = call;
  context.result = 'bypass';
  const { conditions, ...paging } = readListQuery(context.parameters);
  const isSearch = conditions.length > 0;
  const { depth } = req.headers;
  const hasRecords = depth === '1' || depth === 'infinity';
  // Thousands of records are read, and a client repeats a search whose end it has not awaited.
  if (isSearch || hasRecords) endWithClient(req, call.res);
  const handles = isSearch
    ? await searchHandles(call, { prefix, conditions, ...paging })
    : await handlesUnder(call, { prefix, ...paging });
  if (hasRecords) await sendRecords(call, handles);
  else await sendNames(call, handles, { byDefault: isSearch ? 'json' : 'text', nameOf: pathOfSuffix });
}

/** Parses the query; every parameter except `limit` and `page` is a search condition. */
function readListQuery(parameters: URLSearchParams): Paging & { conditions: Condition[] } {
  const limit = readNumber(parameters, 'limit', { min: 0, byDefault: DEFAULT_LIMIT });
  const page = readNumber(parameters, 'page', { min: 1, byDefault: 1 });
  const conditions = [...parameters].filter(([name]) => name !== 'limit' && name !== 'page');
  if (conditions.length <= MAX_CONDITIONS) return { limit, page, conditions };
  throw new ServiceError('BAD_PARAMETER', { detail: `give at most ${MAX_CONDITIONS} conditions` });
}

function readNumber(
  parameters: URLSearchParams,
  name: string,
  { min, byDefault }: { min: number; byDefault: number },
): number {
  const given = parameters.get(name);
  if (given === null) return byDefault;
  const value = Number(given);
  if (/^\d{1,9}$/.test(given) && value >= min) return value;
  throw new ServiceError('BAD_PARAMETER', { detail: `${name} has to be a whole number, at least ${min}` });
}

/** Returns the suffix as a relative URL with escaped slashes. U+FFFD replaces lone surrogates, which have no escape. */
const pathOfSuffix = (handle: string): string =>
  encodeURIComponent(handle.slice(handle.indexOf('/') + 1).toWellFormed());

const TYPES = {
  text: ['text/plain', 'application/json', 'application/x-json'],
  json: ['application/json', 'application/x-json', 'text/plain'],
};

/** Sends each item's name, as lines or a JSON array, written in steps. `byDefault`: if the client accepts both. */
async function sendNames(
  { req, res, run }: V2Request,
  items: readonly string[],
  { byDefault, nameOf }: { byDefault: keyof typeof TYPES; nameOf: (item: string) => string },
): Promise<void> {
  const types = negotiatorOf(req.headers.accept).mediaTypes(TYPES[byDefault]);
  const isText = (types[0] ?? TYPES[byDefault][0]) === 'text/plain';
  const write = (group: readonly string[]): Buffer => {
    const names = group.map(nameOf);
    return Buffer.from(isText ? `${names.join('\n')}\n` : writeTexts(names));
  };
  const parts = await run(
    flatMapGroups(items, (group) => [write(group)]),
    charsIn(items),
  );
  const body = isText ? parts : frameParts('[', parts, ']');
  const contentType = isText ? 'text/plain;charset=utf-8' : JSON_TYPE;
  sendV2(res, { status: 200, headers: NO_STORE, contentType, body });
}

const COMMA = Buffer.from(',');

/** Returns the body of a JSON list or object with these parts, which are not copied. */
const frameParts = (open: string, parts: readonly Buffer[], close: string): Buffer[] => [
  Buffer.from(open),
  ...parts.flatMap((part, at) => (at === 0 ? [part] : [COMMA, part])),
  Buffer.from(close),
];

/**
 * Reads the public record of each handle through the cache; undefined for a handle without one. The first failure
 * fails all. Slices short records too, because a search or a list with `Depth: 1` reads thousands of them; counts each as
 * held while it waits for a slice. `chars` is 0 before the record is read.
 */
function mapRecords<T>(
  call: V2Call,
  handles: readonly string[],
  work: (values: readonly HandleValue[], handle: string) => Steps<T>,
): Promise<(T | undefined)[]> {
  const run: RunSteps = (steps, chars) =>
    call.run(steps, chars === 0 ? Infinity : Math.max(chars, SMALL_CHARS + 1));
  return mapLimited(handles, call.v2.config.v2.search.concurrency, async (handle) => {
    const record = await readPublic({ ...call, run }, call.v2.host.refOf(handle));
    return record && run(work(record.values, handle), record.chars);
  });
}

/** Sends each handle's public values (`Depth: 1`), written as they arrive. */
async function sendRecords(call: V2Call, handles: readonly string[]): Promise<void> {
  const { maxHandles, maxBytes } = call.v2.config.v2.search;
  if (handles.length > maxHandles) {
    const detail = `give a limit of at most ${maxHandles}`;
    throw new ServiceError('V2_NOT_SUPPORTED', { detail });
  }
  const hold = call.v2.unsent.countStream(call.res);
  let bytes = 0;
  const charge = (entry: string): Buffer => {
    const part = Buffer.from(entry);
    bytes += part.length;
    if (bytes > maxBytes) {
      const detail = `give a smaller limit: the records have more than ${maxBytes} bytes`;
      throw new ServiceError('V2_NOT_SUPPORTED', { detail });
    }
    hold(bytes);
    return part;
  };
  const parts = await mapRecords(call, [...new Set(handles)], (values, handle) =>
    writeMember(handle, values, charge),
  );
  // From here on, the server counts what the client has not read.
  hold(0);
  const known = parts.filter((part) => part !== undefined);
  const body = frameParts('{', known, '}');
  sendV2(call.res, { status: 200, headers: NO_STORE, contentType: JSON_TYPE, body });
}

/** Writes a record as a member of the response. */
function* writeMember<R>(
  handle: string,
  values: readonly HandleValue[],
  finish: (entry: string) => R,
): Steps<R> {
  const path = `/handles/${handle.slice(0, handle.indexOf('/'))}/${pathOfSuffix(handle)}`;
  const visible = yield* visibleValues(values);
  const shown = yield* mapLongInSteps(visible, function* write(value) {
    return yield* writeV2Value(yield* decodeValue(value));
  });
  return finish(`${writeJson(path)}:[${shown.join(',')}]`);
}

interface Paging {
  /** Handles per page; 0 disables paging. */
  limit: number;
  /** Page number, from 1. */
  page: number;
}

/** Lists handles; the server requires the right to list the prefix. */
async function handlesUnder(
  call: V2Call,
  { prefix, limit, page }: Paging & { prefix: string },
): Promise<readonly string[]> {
  const paging = limit === 0 ? {} : { page: page - 1, pageSize: limit };
  const { handles } = await readList(call, { prefix, ...paging });
  return handles;
}

/** Counts handles by requesting an empty page, which contains only the total. */
async function countHandles(call: V2Call, prefix: string): Promise<number> {
  const { members } = await readList(call, { prefix, page: 0, pageSize: 0 });
  const { totalCount } = members;
  // The server sends the count as a string (recording "list: page=0&pageSize=3").
  const count = typeof totalCount === 'string' ? Number(totalCount) : totalCount;
  if (typeof count === 'number' && Number.isInteger(count)) return count;
  throw new ServiceError('UPSTREAM_INVALID_RESPONSE', { diagnosis: { cause: 'a list without totalCount' } });
}

async function readList(
  call: V2Call,
  { prefix, ...page }: ListPage & { prefix: string },
): Promise<Required<Pick<ListAnswer, 'handles' | 'members'>>> {
  const answer = await originFor(call, call.v2.host.refOf(`${prefix}/`)).list(prefix, page);
  const { members, handles } = answer;
  if (handles !== undefined) return { members, handles };
  throw refusalError(answer, 'read');
}

/** Type and pattern; the type `handle` matches the suffix. */
type Condition = readonly [type: string, pattern: string];

interface HandleSearch extends Paging {
  prefix: string;
  conditions: readonly Condition[];
}

/** Maximum reverse lookup results; a response of this length may be incomplete. */
const MAX_RESULTS = 1_000_000;

/** Returns all matches or throws, never a partial result. */
async function searchHandles(call: V2Call, search: HandleSearch): Promise<string[]> {
  const [service] = call.v2.host.hooks.search;
  if (service === undefined) return pageOfHandles(await scanPrefix(call, search), search);
  assertPathSegment(search.prefix);
  const { limit, page } = search;
  // Some services number pages from 0, others from 1: this requests a single first page that is long enough.
  const size = limit === 0 ? MAX_RESULTS : limit * page;
  // The login for the Handle server, whose identity `v2.identities` may name.
  const { authorization } = call.login;
  const { caller } = call.context;
  if (!service.forwardsLogin) await checkLogin(call);
  const found = await service.find({ ...search, limit: size, authorization, caller });
  if (found === 'unauthorized')
    throw new ServiceError('V2_LOGIN_NEEDED', {
      detail: 'the reverse lookup service rejected the credentials',
    });
  if (found === 'forbidden')
    throw new ServiceError('V2_FORBIDDEN', { detail: 'the reverse lookup service denied it' });
  if (found.length >= MAX_RESULTS) throw new ServiceError('V2_NOT_SUPPORTED', { detail: 'give a limit' });
  return pageOfHandles(found.slice(0, size), search);
}

/** Rejects `.` and `..`: servers resolve these segments, in any spelling, to a different path. */
function assertPathSegment(prefix: string): void {
  if (prefix !== '.' && prefix !== '..') return;
  throw new ServiceError('BAD_PATH', { message: `There is no prefix ${prefix}` });
}

const pageOfHandles = (handles: readonly string[], { limit, page }: Paging): string[] =>
  limit === 0 ? [...handles] : handles.slice((page - 1) * limit, page * limit);

/** Lists handles with the caller's rights, and matches the public record of each. */
async function scanPrefix(call: V2Call, { prefix, conditions }: HandleSearch): Promise<string[]> {
  const { maxHandles } = call.v2.config.v2.search;
  assertScannable(await countHandles(call, prefix), maxHandles);
  const handles = await handlesUnder(call, { prefix, limit: 0, page: 1 });
  assertScannable(handles.length, maxHandles);
  const criteria = readCriteria(conditions);
  const matches = await mapRecords(call, handles, (values, handle) => meetsAll(criteria, handle, values));
  return handles.filter((_handle, at) => matches[at]);
}

function assertScannable(count: number, maxHandles: number): void {
  if (count <= maxHandles) return;
  const detail =
    `the prefix has ${count} handles, and at most ${maxHandles} are read for one search;` +
    ' the operator can set reverseLookup.url';
  throw new ServiceError('V2_NOT_SUPPORTED', { detail });
}

/** Literals between the asterisks of a pattern. */
type Pattern = readonly string[];

function readCriteria(conditions: readonly Condition[]) {
  const suffixes: Pattern[] = [];
  const byType = new Map<string, Pattern[]>();
  for (const [type, pattern] of conditions) {
    if (type === 'handle') suffixes.push(splitPattern(upperAscii(pattern)));
    else byType.set(type, [...(byType.get(type) ?? []), splitPattern(pattern)]);
  }
  return { suffixes, byType };
}

/** Whether the handle meets all criteria. Translates each value once for all conditions. */
function* meetsAll(
  { suffixes, byType }: ReturnType<typeof readCriteria>,
  handle: string,
  values: readonly HandleValue[],
): Steps<boolean> {
  const suffix = upperAscii(handle.slice(handle.indexOf('/') + 1));
  if (!suffixes.every((pattern) => matchesInSequence(suffix, pattern))) return false;
  const unmet = new Map(byType);
  for (const value of values) {
    const wanted = unmet.get(value.type);
    if (wanted === undefined || isHidden(value)) continue;
    const text = yield* parsedTextOf(value);
    const left: Pattern[] = [];
    for (const pattern of wanted) {
      if (text === undefined || !matchesInSequence(text, pattern)) left.push(pattern);
      yield;
    }
    if (left.length === 0) unmet.delete(value.type);
    else unmet.set(value.type, left);
  }
  return unmet.size === 0;
}

/** Splits a pattern into its literals: `*` matches any text, and `~` escapes the next character. */
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

/** Maps items in order with bounded concurrency. After the first failure, no further work starts. */
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
