// The operator's calls: purge, look into the cache, statistics, log level.
import express, { type Request, type Response, Router } from 'express';
import type { z } from 'zod';
import type { Operations, PurgeOrder } from './operations.js';
import { logLevelBody, orderOf, purgeBody } from './request-schemas.js';
import { sendProblem } from './problem.js';

/** Ten thousand handles of a usual length, and then some. */
const MOST_BODY_BYTES = 4 * 1024 ** 2;

export function createApi(operations: Operations): Router {
  const api = Router();
  // Whatever the type says: `curl -d` says it is a form.
  const body = express.json({ limit: MOST_BODY_BYTES, type: () => true, strict: true });

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
  api.post('/purge', body, async (req, res) => {
    const given = parse(purgeBody, req, res);
    if (given === undefined) return;
    const order = orderOf(given);
    Object.assign(res.locals, { told: toldOf(order) });
    const { isShared } = await operations.purge(order);
    res.json({ purged: toldOf(order), soft: order.isSoft, shared: isShared });
  });
  api.put('/log-level', body, async (req, res) => {
    const given = parse(logLevelBody, req, res);
    if (given === undefined) return;
    Object.assign(res.locals, { told: given });
    await operations.setLogLevel(given.level);
    res.json(given);
  });
  return api;
}

function parse<T extends z.ZodType>(schema: T, req: Request, res: Response): z.output<T> | undefined {
  const parsed = schema.safeParse(req.body);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  sendProblem(res, 'ADMIN_BAD_BODY', issue?.message ?? 'the body cannot be read');
  return undefined;
}

const MOST_TOLD = 5;

/** What was purged, in a few words: a list may be long. */
function toldOf(order: PurgeOrder): object {
  if ('prefix' in order) return order.prefix === '' ? { all: true } : { prefix: order.prefix };
  const { handles } = order;
  return { count: handles.length, handles: handles.slice(0, MOST_TOLD) };
}
