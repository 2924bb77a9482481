// Handles the admin API: purge, cache inspection, statistics, log level.
import type { Request, RequestHandler } from 'express';
import { z } from 'zod';
import type { Operations, PurgeRequest } from '../../app/operations.js';
import { LOG_LEVELS } from '../../config/schema-server.js';
import { ServiceError } from '../../errors.js';
import { MAX_HANDLE_BYTES } from '../../handle/handle.js';
import {
  type JsonLimits,
  type WithBody,
  createMemoryBudget,
  createWithBody,
  parseJsonBody,
  parseUpToIssue,
} from '../../http/request-body.js';
import { ERRORS } from './plugin.js';

/** Maximum body size, enough for 10,000 handles of typical length. */
const MAX_BODY_BYTES = 4 * 1024 ** 2;
const MAX_TOTAL_BYTES = 4 * MAX_BODY_BYTES;
const MAX_LOGGED_HANDLES = 5;

type ApiHandler = 'stats' | 'inspectCache' | 'purge' | 'setLogLevel';

/** Parses a body with any Content-Type, because `curl -d` declares a form. */
type ReadJson = <T extends z.ZodType>(req: Request, schema: T) => Promise<z.output<T>>;

const createReadJson =
  (withBody: WithBody): ReadJson =>
  (req, schema) =>
    withBody(req, async (body, memory) => {
      const json = await parseJsonBody(req, body, memory, BODY_RULES);
      const parsed = parseUpToIssue(schema, json);
      if (parsed.success) return parsed.data;
      throw new ServiceError(ERRORS.ADMIN_BAD_BODY, { detail: parsed.error.issues[0]?.message ?? 'invalid' });
    });

export function createApi(operations: Operations): Record<ApiHandler, RequestHandler> {
  const withBody = createWithBody(createMemoryBudget(MAX_TOTAL_BYTES), MAX_BODY_BYTES);
  const readJson = createReadJson(withBody);
  return {
    async stats(_req, res) {
      res.json(await operations.stats());
    },
    async inspectCache(req, res) {
      const { handle } = req.query;
      if (typeof handle !== 'string' || handle === '') {
        throw new ServiceError('BAD_PARAMETER', { detail: 'give ?handle=…' });
      }
      const copies = await operations.inspect(handle);
      res.json({ handle, cached: copies.length > 0, copies });
    },
    async purge(req, res) {
      const request = purgeRequestOf(await readJson(req, purgeBody));
      const purged = summaryOf(request);
      Object.assign(res.locals, { details: purged });
      const { isShared } = await operations.purge(request);
      res.json({ purged, soft: request.isSoft, shared: isShared });
    },
    async setLogLevel(req, res) {
      const body = await readJson(req, logLevelBody);
      Object.assign(res.locals, { details: body });
      operations.setLogLevel(body.level);
      res.json(body);
    },
  };
}

function purgeRequestOf({ soft: isSoft = false, ...target }: z.output<typeof purgeBody>): PurgeRequest {
  if ('handle' in target) return { isSoft, handles: [target.handle] };
  if ('handles' in target) return { isSoft, handles: target.handles };
  return { isSoft, prefix: 'prefix' in target ? target.prefix : '' };
}

/** Summarises the request for the response and the log. */
function summaryOf(request: PurgeRequest): object {
  if ('prefix' in request) return request.prefix === '' ? { all: true } : { prefix: request.prefix };
  const { handles } = request;
  return { count: handles.length, handles: handles.slice(0, MAX_LOGGED_HANDLES) };
}

/** Maximum handles per purge; more would block the event loop. */
const MAX_HANDLES = 10_000;

/** Limits of every request body: the handles of a purge, and the body itself. */
const BODY_LIMITS: JsonLimits = { elements: MAX_HANDLES, values: MAX_HANDLES + 10 };

const BODY_RULES = {
  maxBodyBytes: MAX_BODY_BYTES,
  limits: BODY_LIMITS,
  codes: { invalid: ERRORS.ADMIN_BAD_BODY, encoding: ERRORS.ADMIN_BAD_BODY },
} as const;

const handle = z
  .string()
  .min(1)
  .refine((text) => Buffer.byteLength(text) <= MAX_HANDLE_BYTES && !text.includes('\0'), 'not a handle');
const soft = z.boolean().optional();

export const purgeBody = z.union(
  [
    z.strictObject({ handle, soft }),
    z.strictObject({ handles: z.array(handle).min(1).max(MAX_HANDLES), soft }),
    z.strictObject({ prefix: handle, soft }),
    z.strictObject({ all: z.literal(true), soft }),
  ],
  {
    error: `give {"handle": "…"}, {"handles": ["…"]} with at most ${MAX_HANDLES}, {"prefix": "…"} or {"all": true}, and "soft": true or false`,
  },
);

export const logLevelBody = z.strictObject(
  { level: z.enum(LOG_LEVELS) },
  { error: `give {"level": "…"} with one of ${LOG_LEVELS.join(', ')}` },
);
