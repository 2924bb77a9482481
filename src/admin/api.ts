// The operator's calls: purge, look into the cache, statistics, log level.
import { type Request, Router } from 'express';
import type { z } from 'zod';
import { ServiceError } from '../errors.js';
import { createWithBody, parseJsonBody } from '../http/request-body.js';
import type { Operations, PurgeOrder } from './operations.js';
import { logLevelBody, orderOf, purgeBody } from './request-schemas.js';
import { sendProblem } from './problem.js';

/** Ten thousand handles of a usual length, and then some. */
const MAX_BODY_BYTES = 4 * 1024 ** 2;
const MAX_TOTAL_BYTES = 4 * MAX_BODY_BYTES;

const CODES = { invalid: 'ADMIN_BAD_BODY', encoding: 'ADMIN_BAD_BODY' } as const;

export function createApi(operations: Operations): Router {
  const api = Router();
  const withBody = createWithBody({ maxBodyBytes: MAX_BODY_BYTES, maxTotalBytes: MAX_TOTAL_BYTES });

  /** Receives a JSON body that fits the schema. The Content-Type does not count: `curl -d` sends that of a form. */
  const readJson = <T extends z.ZodType>(req: Request, schema: T): Promise<z.output<T>> =>
    withBody(req, async (body) => {
      const encoding = req.headers['content-encoding'];
      const parsed = schema.safeParse(
        await parseJsonBody(body, { encoding, maxBodyBytes: MAX_BODY_BYTES, codes: CODES }),
      );
      if (parsed.success) return parsed.data;
      throw new ServiceError('ADMIN_BAD_BODY', { detail: parsed.error.issues[0]?.message ?? 'invalid' });
    });

  api.get('/stats', async (_req, res) => {
    res.json(await operations.stats());
  });
  api.get('/cache', async (req, res) => {
    const { handle } = req.query;
    if (typeof handle !== 'string' || handle === '') {
      sendProblem(res, 'BAD_PARAMETER', 'give ?handle=…');
      return;
    }
    const copies = await operations.look(handle);
    res.json({ handle, cached: copies.length > 0, copies });
  });
  api.post('/purge', async (req, res) => {
    const order = orderOf(await readJson(req, purgeBody));
    Object.assign(res.locals, { told: toldOf(order) });
    const { isShared } = await operations.purge(order);
    res.json({ purged: toldOf(order), soft: order.isSoft, shared: isShared });
  });
  api.put('/log-level', async (req, res) => {
    const given = await readJson(req, logLevelBody);
    Object.assign(res.locals, { told: given });
    await operations.setLogLevel(given.level);
    res.json(given);
  });
  return api;
}

const MOST_TOLD = 5;

/** What was purged, in a few words: a list may be long. */
function toldOf(order: PurgeOrder): object {
  if ('prefix' in order) return order.prefix === '' ? { all: true } : { prefix: order.prefix };
  const { handles } = order;
  return { count: handles.length, handles: handles.slice(0, MOST_TOLD) };
}
