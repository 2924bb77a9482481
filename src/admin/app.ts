// The operator's listener: is it alive, is it ready, what does it measure, what does it hold; a page to watch it.
import express, {
  type Express,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
} from 'express';
import { type ErrorCode, ServiceError } from '../errors.js';
import type { Metrics } from '../observe/metrics.js';
import type { Readiness } from '../observe/readiness.js';
import { createApi } from './api.js';
import { type OnCall, createCallLog } from './call-log.js';
import type { Operations } from './operations.js';
import { sendProblem } from './problem.js';
import { createEvents } from './status/events.js';
import { createStatusFiles, statusPage } from './status/page.js';

export interface AdminDeps {
  /** Stands before everything else: who may ask. */
  tokenCheck: RequestHandler;
  metrics: Pick<Metrics, 'exposition' | 'contentType'>;
  readiness: Readiness;
  operations: Operations;
  /** Told of every call when it is over; `isRoutine`: a machine asks it every few seconds. */
  onCall?: OnCall;
  /** Told of failures that are nobody's fault but ours. */
  onUnexpected?: (error: unknown) => void;
}

export function createAdminApp(deps: AdminDeps): Express {
  const { tokenCheck, metrics, readiness, operations, onCall, onUnexpected } = deps;
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use(neverKept);
  if (onCall) app.use(createCallLog(onCall)); // sees those that are refused too
  app.use(tokenCheck);

  app.get('/healthz', (_req, res) => {
    res.json({ status: 'ok' });
  });
  app.get('/readyz', (_req, res) => {
    const { ready, notReady } = readiness.report();
    res.status(ready ? 200 : 503).json({ status: ready ? 'ready' : 'not ready', notReady });
  });
  app.get('/metrics', async (_req, res) => {
    res.type(metrics.contentType).send(await metrics.exposition());
  });
  app.get('/', statusPage);
  app.get('/status/:file', createStatusFiles());
  app.get('/events', createEvents({ stats: () => operations.stats(), onUnexpected }));
  app.use(createApi(operations));

  app.use((req: Request, res: Response) => {
    sendProblem(res, 'UNKNOWN_ENDPOINT', `${req.method} ${req.path} is not answered here`);
  });
  // Express knows an error handler by its four parameters.
  app.use((error: unknown, _req: Request, res: Response, next: NextFunction) => {
    const refusal = refusalOf(error);
    if (refusal === undefined) onUnexpected?.(error);
    if (res.headersSent) next(error);
    else if (refusal) sendProblem(res, ...refusal);
    else sendProblem(res, 'INTERNAL', 'see the log');
  });
  return app;
}

/** Errors of the caller: those of the catalogue, and Express' own for a path that it cannot decode. */
function refusalOf(error: unknown): [code: ErrorCode, detail: string | undefined] | undefined {
  if (error instanceof ServiceError) return [error.code, error.detail];
  const { status } = error as { status?: unknown };
  return status === 400 ? ['BAD_REQUEST', 'the path is not percent-encoded'] : undefined;
}

/** The state of a moment: an old one would mislead whoever reads it. */
function neverKept(_req: Request, res: Response, next: NextFunction): void {
  res.set('Cache-Control', 'no-store');
  next();
}
