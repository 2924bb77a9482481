// GET of a collection: the prefixes, the handles of a prefix, or the handles that match a search.
import { ServiceError } from '../errors.js';
import { writeJson } from '../handle/json.js';
import { contextOf } from '../http/context.js';
import { readParameters } from '../http/query.js';
import type { V2Call, V2Deps } from './deps.js';
import { readPublic } from './read.js';
import { refusalError } from './refusal.js';
import type { Collection } from './resource.js';
import { JSON_TYPE, PRIVATE, send } from './response.js';
import { type Condition, type Paging, listHandles, mapLimited, searchHandles } from './search.js';
import { toV2 } from './translation/translate.js';
import type { V2Value } from './translation/value.js';

const DEFAULT_LIMIT = 1000;
/** Of one search. The forms of ePIC clients have at most a handful. */
const MAX_CONDITIONS = 32;

export async function listPrefixes(
  deps: V2Deps,
  { req, res, login }: Pick<V2Call, 'req' | 'res'> & Partial<V2Call>,
): Promise<void> {
  if (login !== undefined) await checkLogin(deps, login);
  sendNames(
    { req, res },
    deps.settings.prefixes.map((prefix) => `${prefix}/`),
    'text',
  );
}

/** The list needs no upstream request, so a wrong password shows only in a read of its own. */
async function checkLogin({ records }: V2Deps, { identity, authorization }: V2Call['login']): Promise<void> {
  const answer = await records.get(identity.handle, { authorization, publicOnly: true });
  if (answer.status === 401) throw refusalError(answer, 'read');
}

export async function listCollection(deps: V2Deps, call: V2Call, { prefix }: Collection): Promise<void> {
  const { req, res } = call;
  const context = contextOf(res);
  context.result = 'bypass';
  const { conditions, ...paging } = readListQuery(readParameters(context.target.query));
  const isSearch = conditions.length > 0;
  const handles = isSearch
    ? await searchHandles(deps, call, { prefix, conditions, ...paging })
    : await listHandles(deps, call, { prefix, ...paging });
  const { depth } = req.headers;
  if (depth === '1' || depth === 'infinity') await sendRecords(deps, call, handles);
  else sendNames({ req, res }, handles.map(pathOfSuffix), isSearch ? 'json' : 'text');
}

/** Every parameter other than `limit` and `page` is a search condition. */
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
  throw new ServiceError('BAD_PARAMETER', { detail: `${name} has to be a whole number from ${min} on` });
}

/** The suffix as a relative URL, slashes percent-encoded. A lone surrogate becomes U+FFFD, which can be encoded. */
const pathOfSuffix = (handle: string): string =>
  encodeURIComponent(Buffer.from(handle.slice(handle.indexOf('/') + 1)).toString());

const TYPES = {
  text: ['text/plain', 'application/json', 'application/x-json'],
  json: ['application/json', 'application/x-json', 'text/plain'],
};

/** Text with one name per line, or a JSON array; `byDefault` when the client accepts both. */
function sendNames(
  { req, res }: Pick<V2Call, 'req' | 'res'>,
  names: readonly string[],
  byDefault: keyof typeof TYPES,
): void {
  const accepted = req.accepts(TYPES[byDefault]) || TYPES[byDefault][0];
  const isText = accepted === 'text/plain';
  const body = isText ? names.map((name) => `${name}\n`).join('') : writeJson(names);
  const contentType = isText ? 'text/plain;charset=utf-8' : JSON_TYPE;
  send(res, { status: 200, headers: PRIVATE, contentType, body });
}

/** `Depth: 1`: the public values of each handle, through the cache. */
async function sendRecords(deps: V2Deps, { res }: V2Call, handles: readonly string[]): Promise<void> {
  const { maxHandles, concurrency } = deps.settings.search;
  if (handles.length > maxHandles) {
    const detail = `give a limit of at most ${maxHandles}, or let the operator raise v2.search.maxHandles`;
    throw new ServiceError('V2_NOT_SUPPORTED', { detail });
  }
  const records = await mapLimited(handles, concurrency, async (handle) => {
    const values = await readPublic(deps, handle);
    return values && deps.run(toV2(values), Infinity);
  });
  const entries = handles.flatMap((handle, at): [string, V2Value[]][] => {
    const values = records[at];
    const prefix = handle.slice(0, handle.indexOf('/'));
    return values === undefined ? [] : [[`/handles/${prefix}/${pathOfSuffix(handle)}`, values]];
  });
  const body = writeJson(Object.fromEntries(entries));
  send(res, { status: 200, headers: PRIVATE, contentType: JSON_TYPE, body });
}
