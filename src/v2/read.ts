// GET and HEAD of a handle: its values as ePIC v2 writes them.
import type { Request, Response } from 'express';
import { ServiceError } from '../errors.js';
import { writeJson } from '../handle/json.js';
import type { HandleValue } from '../handle/value.js';
import { cacheHeaders } from '../http/cache-headers.js';
import { type Result, contextOf } from '../http/context.js';
import type { FromEntry } from '../resolver/resolution.js';
import { demandConditions } from './conditions.js';
import type { Call, V2Deps } from './deps.js';
import { fromUpstream } from './from-upstream.js';
import { resolvePublic, valuesOf } from './public-record.js';
import { readAs } from './record.js';
import { JSON_TYPE, PRIVATE, send } from './send.js';
import type { HandleTarget } from './target.js';
import { validatorsOf } from './write-response.js';

export interface Read {
  /** With the caller's credentials; nothing of it is kept. */
  asCaller: (call: Call, target: HandleTarget) => Promise<void>;
  /** Without a login, from the shared cache. */
  asAnybody: (req: Request, res: Response, target: HandleTarget) => Promise<void>;
}

export function createRead(deps: V2Deps): Read {
  return {
    async asCaller({ req, res, login }, { handle }) {
      contextOf(res).result = 'bypass';
      const record = await readAs(deps.records, login, { handle, authoritative: false });
      sendValues(req, res, { values: record?.values, headers: PRIVATE });
    },
    async asAnybody(req, res, { handle }) {
      const resolution = await resolvePublic(deps, handle);
      contextOf(res).result = resultOf(resolution);
      if (resolution.stale) deps.onStale(resolution.stale);
      const { clientMaxAgeMs } = deps.settings;
      const headers = cacheHeaders({ resolution, authoritative: false, now: deps.now(), clientMaxAgeMs });
      sendValues(req, res, { values: valuesOf(resolution), headers });
    },
  };
}

/** A handle of which nothing is shown is missing for readers, though it exists for conditions. */
function sendValues(
  req: Request,
  res: Response,
  { values, headers }: { values: readonly HandleValue[] | undefined; headers: Record<string, string> },
): void {
  const verdict = demandConditions(req, values);
  const shown = fromUpstream(values ?? []);
  if (values === undefined || shown.length === 0) throw new ServiceError('V2_NOT_FOUND');
  const all = { ...headers, ...validatorsOf(values) };
  if (verdict === 'not-modified') send(res, { status: 304, headers: all });
  else send(res, { status: 200, headers: all, contentType: JSON_TYPE, body: writeJson(shown) });
}

function resultOf({ from, stale }: FromEntry): Result {
  if (stale !== undefined) return 'stale';
  return from === 'upstream' ? 'miss' : 'hit';
}
