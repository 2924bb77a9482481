// GET of a collection: the prefixes, the handles of a prefix, or those of them that are searched for.
import { ServiceError } from '../errors.js';
import { writeJson } from '../handle/json.js';
import { contextOf } from '../http/context.js';
import { readParameters } from '../http/query.js';
import type { Call, V2Deps } from './deps.js';
import { fromUpstream } from './from-upstream.js';
import { type Paging, listHandles } from './listing.js';
import { mapLimited } from './map-limited.js';
import { publicValues } from './public-record.js';
import { refusalOf } from './refusal.js';
import { type Condition, searchHandles } from './search.js';
import { JSON_TYPE, PRIVATE, send } from './send.js';
import type { CollectionTarget } from './target.js';
import type { V2Value } from './value.js';

const DEFAULT_LIMIT = 1000;

export interface Collection {
  prefixes: (call: Pick<Call, 'req' | 'res'> & Partial<Pick<Call, 'login'>>) => Promise<void>;
  handles: (call: Call, target: CollectionTarget) => Promise<void>;
}

export function createCollection(deps: V2Deps): Collection {
  return {
    async prefixes({ req, res, login }) {
      if (login !== undefined) await demandLogin(deps, login);
      sendNames(
        { req, res },
        deps.settings.prefixes.map((prefix) => `${prefix}/`),
        'text',
      );
    },
    async handles(call, { prefix }) {
      const { req, res } = call;
      const context = contextOf(res);
      context.result = 'bypass';
      const { conditions, ...paging } = readQuery(readParameters(context.target.query));
      const isSearch = conditions.length > 0;
      const handles = isSearch
        ? await searchHandles(deps, call, { prefix, conditions, ...paging })
        : await listHandles(deps, call, { prefix, ...paging });
      const depth = req.headers['depth'];
      if (depth === '1' || depth === 'infinity') await sendRecords(deps, call, handles);
      else sendNames({ req, res }, handles.map(pathIn), isSearch ? 'json' : 'text');
    },
  };
}

/** Nothing is asked of the Handle server here that would tell a wrong password. */
async function demandLogin({ records }: V2Deps, { identity, authorization }: Call['login']): Promise<void> {
  const answer = await records.get(identity.handle, { authorization, publicOnly: true });
  if (answer.status === 401) throw refusalOf(answer, 'read');
}

function readQuery(parameters: URLSearchParams): Paging & { conditions: Condition[] } {
  const limit = readWhole(parameters, 'limit', { atLeast: 0, byDefault: DEFAULT_LIMIT });
  const page = readWhole(parameters, 'page', { atLeast: 1, byDefault: 1 });
  return { limit, page, conditions: [...parameters].filter(([name]) => name !== 'limit' && name !== 'page') };
}

function readWhole(
  parameters: URLSearchParams,
  name: string,
  { atLeast, byDefault }: { atLeast: number; byDefault: number },
): number {
  const given = parameters.get(name);
  if (given === null) return byDefault;
  const value = Number(given);
  if (/^\d{1,9}$/.test(given) && value >= atLeast) return value;
  throw new ServiceError('BAD_PARAMETER', { detail: `${name} has to be a whole number from ${atLeast} on` });
}

/** The suffix as a relative address: percent-encoded as UTF-8 has it, its slashes too. */
const pathIn = (handle: string): string =>
  encodeURIComponent(Buffer.from(handle.slice(handle.indexOf('/') + 1)).toString());

const TYPES = {
  text: ['text/plain', 'application/json', 'application/x-json'],
  json: ['application/json', 'application/x-json', 'text/plain'],
};

/** As text, one name a line, or as a JSON array; `byDefault` where the client has no wish. */
function sendNames(
  { req, res }: Pick<Call, 'req' | 'res'>,
  names: readonly string[],
  byDefault: keyof typeof TYPES,
): void {
  const wanted = req.accepts(TYPES[byDefault]) || TYPES[byDefault][0];
  const isText = wanted === 'text/plain';
  const headers = { ...PRIVATE };
  const body = isText ? names.map((name) => `${name}\n`).join('') : writeJson(names);
  send(res, { status: 200, headers, contentType: isText ? 'text/plain;charset=utf-8' : JSON_TYPE, body });
}

/** `Depth: 1`: what everybody may read of each, through the cache. */
async function sendRecords(deps: V2Deps, { res }: Call, handles: readonly string[]): Promise<void> {
  const { maxHandles, concurrency } = deps.settings.search;
  if (handles.length > maxHandles) {
    const detail = `give a limit of at most ${maxHandles}, or let the operator raise v2.search.maxHandles`;
    throw new ServiceError('V2_NOT_SUPPORTED', { detail });
  }
  const records = await mapLimited(handles, concurrency, (handle) => publicValues(deps, handle));
  const entries = handles.flatMap((handle, at): [string, V2Value[]][] => {
    const values = records[at];
    const prefix = handle.slice(0, handle.indexOf('/'));
    return values === undefined ? [] : [[`/handles/${prefix}/${pathIn(handle)}`, fromUpstream(values)]];
  });
  const body = writeJson(Object.fromEntries(entries));
  send(res, { status: 200, headers: PRIVATE, contentType: JSON_TYPE, body });
}
