// The admin API: purge, cache inspection, statistics, log level.
import { pipeline } from 'node:stream/promises';
import { type Request, Router } from 'express';
import { z } from 'zod';
import { ServiceError } from '../errors.js';
import { MAX_HANDLE_BYTES } from '../handle/handle.js';
import { type WithBody, createMemoryBudget, createWithBody, parseJsonBody } from '../http/request-body.js';
import { LOG_LEVELS } from '../observe/logger.js';
import type { Operations, PurgeRequest } from './operations.js';
import { refuseOtherMethods } from './problem.js';

/** A longer list would block a process. */
const MAX_HANDLES = 10_000;
/** Enough for that many handles of usual length. */
const MAX_BODY_BYTES = 4 * 1024 ** 2;
const MAX_TOTAL_BYTES = 4 * MAX_BODY_BYTES;
const MAX_LOGGED_HANDLES = 5;
const BODY_ERRORS = { invalid: 'ADMIN_BAD_BODY', encoding: 'ADMIN_BAD_BODY' } as const;

const handle = z
  .string()
  .min(1)
  .refine((text) => Buffer.byteLength(text) <= MAX_HANDLE_BYTES && !text.includes('\0'), 'not a handle');
const soft = z.boolean().optional().describe('Keep the entries as stale, for an upstream that fails.');

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

/** A prefix as it stands before the slash of its handles. */
const isPrefix = (given: unknown): given is string =>
  typeof given === 'string' && given !== '' && !given.includes('/');

/** Records of the cache as lines of JSON, out and in. */
function addTransfer(api: Router, operations: Operations, withBody: WithBody): void {
  api.get('/export', async (req, res) => {
    const { prefix } = req.query;
    if (!isPrefix(prefix))
      throw new ServiceError('BAD_PARAMETER', { detail: 'give ?prefix=… without a slash' });
    Object.assign(res.locals, { told: { prefix } });
    res.type('application/x-ndjson');
    await pipeline(operations.exportRecords(prefix), res);
  });
  api.all('/export', refuseOtherMethods('GET', 'HEAD'));
  api.post('/import', async (req, res) => {
    const counts = await withBody(req, (body) => Promise.resolve(operations.importLines(body.toString())));
    Object.assign(res.locals, { told: counts });
    res.json(counts);
  });
  api.all('/import', refuseOtherMethods('POST'));
}

/** Networks and agents by their traffic; ends the limit of a network. */
function addTraffic(api: Router, operations: Operations): void {
  api.get('/traffic', async (_req, res) => {
    res.json(await operations.traffic());
  });
  api.all('/traffic', refuseOtherMethods('GET', 'HEAD'));
  // With its slash percent-encoded or not.
  api.delete('/traffic/blocked/*network', async (req, res) => {
    const network = req.params.network.join('/');
    if (!(await operations.unblock(network))) {
      throw new ServiceError('ADMIN_NOT_BLOCKED', {
        detail: 'GET /traffic lists limited networks as blocked',
      });
    }
    res.status(204).end();
  });
  api.all('/traffic/blocked/*network', refuseOtherMethods('DELETE'));
}

export function createApi(operations: Operations): Router {
  const api = Router();
  const withBody = createWithBody({
    maxBodyBytes: MAX_BODY_BYTES,
    budget: createMemoryBudget(MAX_TOTAL_BYTES),
  });

  /** Of any Content-Type: `curl -d` declares a form. */
  const readJson = <T extends z.ZodType>(req: Request, schema: T): Promise<z.output<T>> =>
    withBody(req, async (body) => {
      const encoding = req.headers['content-encoding'];
      const options = { encoding, maxBodyBytes: MAX_BODY_BYTES, codes: BODY_ERRORS };
      const parsed = schema.safeParse(await parseJsonBody(body, options));
      if (parsed.success) return parsed.data;
      throw new ServiceError('ADMIN_BAD_BODY', { detail: parsed.error.issues[0]?.message ?? 'invalid' });
    });

  api.get('/stats', async (_req, res) => {
    res.json(await operations.stats());
  });
  api.get('/cache', async (req, res) => {
    const { handle } = req.query;
    if (typeof handle !== 'string' || handle === '') {
      throw new ServiceError('BAD_PARAMETER', { detail: 'give ?handle=…' });
    }
    const copies = await operations.inspect(handle);
    res.json({ handle, cached: copies.length > 0, copies });
  });
  api.post('/purge', async (req, res) => {
    const request = purgeRequestOf(await readJson(req, purgeBody));
    const purged = summaryOf(request);
    Object.assign(res.locals, { told: purged });
    const { isShared } = await operations.purge(request);
    res.json({ purged, soft: request.isSoft, shared: isShared });
  });
  api.put('/log-level', async (req, res) => {
    const body = await readJson(req, logLevelBody);
    Object.assign(res.locals, { told: body });
    operations.setLogLevel(body.level);
    res.json(body);
  });
  api.all(['/stats', '/cache'], refuseOtherMethods('GET', 'HEAD'));
  api.all('/purge', refuseOtherMethods('POST'));
  api.all('/log-level', refuseOtherMethods('PUT'));
  addTransfer(api, operations, withBody);
  addTraffic(api, operations);
  return api;
}

function purgeRequestOf({ soft: isSoft = false, ...target }: z.output<typeof purgeBody>): PurgeRequest {
  if ('handle' in target) return { isSoft, handles: [target.handle] };
  if ('handles' in target) return { isSoft, handles: target.handles };
  return { isSoft, prefix: 'prefix' in target ? target.prefix : '' };
}

/** Short, for the response and the log. */
function summaryOf(request: PurgeRequest): object {
  if ('prefix' in request) return request.prefix === '' ? { all: true } : { prefix: request.prefix };
  const { handles } = request;
  return { count: handles.length, handles: handles.slice(0, MAX_LOGGED_HANDLES) };
}
