// The admin listener: probes, metrics, status page, API, and its log.
import express, {
  type Express,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
} from 'express';
import { ServiceError } from '../errors.js';
import type { Metrics } from '../observe/metrics.js';
import type { Readiness } from '../observe/health.js';
import { createApi } from './api.js';
import type { Operations } from './operations.js';
import { refuseOtherMethods, sendProblem } from './problem.js';
import { createEventStream } from './status/events.js';
import { createHistory } from './status/history.js';
import { createStatusFiles, statusPage } from './status/page.js';

interface AdminCall {
  method: string;
  path: string;
  /** The handle, purge or log level of the call. */
  told?: unknown;
  from: string | undefined;
  status: number;
  ms: number;
}

export interface AdminDeps {
  /** Checked before every route. */
  tokenCheck: RequestHandler;
  metrics: Pick<Metrics, 'exposition' | 'contentType'>;
  readiness: Readiness;
  /** For how long the event loop has stood still, now or a moment ago; undefined when all is well. */
  heldMs: () => number | undefined;
  operations: Operations;
  /** The description of these calls. */
  openApi: RequestHandler;
  /** Called after every call; `isRoutine`: programs repeat it every few seconds. */
  onCall?: (call: AdminCall, isRoutine: boolean) => void;
  /** Called with every error that the caller did not cause. */
  onUnexpected?: (error: unknown) => void;
}

export function createAdminApp(deps: AdminDeps): Express {
  const { tokenCheck, metrics, readiness, heldMs, operations, openApi, onCall, onUnexpected } = deps;
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use(disableCaching);
  if (onCall) app.use(createCallLog(onCall)); // before the token check, so that refused calls are logged
  app.use(tokenCheck);

  app.get('/healthz', (_req, res) => {
    const held = heldMs();
    if (held === undefined) res.json({ status: 'ok' });
    else res.status(503).json({ status: 'held', heldMs: Math.round(held) });
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
  app.get('/events', createEventStream({ status: createStatusReader(operations), onUnexpected }));
  app.get(['/openapi', '/openapi.json'], openApi);
  app.use(createApi(operations));

  app.all(
    ['/', '/healthz', '/readyz', '/metrics', '/events', '/openapi', '/openapi.json'],
    refuseOtherMethods('GET', 'HEAD'),
  );

  app.use(({ method, path }: Request) => {
    throw new ServiceError('UNKNOWN_ENDPOINT', { detail: `${method} ${path} is not answered here` });
  });
  // Express recognises an error handler by its four parameters.
  app.use((error: unknown, _req: Request, res: Response, next: NextFunction) => {
    const failure = failureOf(error);
    if (failure === undefined) onUnexpected?.(error);
    if (res.headersSent) next(error);
    else sendProblem(res, failure ?? new ServiceError('INTERNAL', { detail: 'see the log' }));
  });
  return app;
}

/** What the status page shows: the statistics, those of the last minute, and the traffic. */
function createStatusReader(operations: Operations): () => Promise<object> {
  const addToHistory = createHistory(() => performance.now());
  const shown = <T>(list: readonly T[]): T[] => list.slice(0, MAX_SHOWN);
  return async function readStatus() {
    const [stats, { rules, networks, agents, blocked }] = await Promise.all([
      operations.stats(),
      operations.traffic(),
    ]);
    const traffic = {
      rules: shown(rules),
      networks: shown(networks),
      agents: shown(agents),
      blocked: shown(blocked),
      blockedCount: blocked.length,
    };
    return { ...stats, ...addToHistory(stats), traffic };
  };
}

/** Errors of the caller: those of the catalogue, and Express' own for a path that it cannot decode. */
function failureOf(error: unknown): ServiceError | undefined {
  if (error instanceof ServiceError) return error;
  const { status } = error as { status?: unknown };
  if (status !== 400) return undefined;
  return new ServiceError('BAD_REQUEST', { detail: 'the path is not percent-encoded' });
}

function disableCaching(_req: Request, res: Response, next: NextFunction): void {
  res.set('Cache-Control', 'no-store');
  next();
}

/** Rows of a list on the status page. */
const MAX_SHOWN = 10;

/** Calls that monitoring and the status page repeat. */
const ROUTINE = /^\/(?:healthz|readyz|metrics|stats|events|status\/[\w.]+)?$/;

/** Logs neither headers nor the raw query, which may hold credentials. */
function createCallLog(onCall: NonNullable<AdminDeps['onCall']>): RequestHandler {
  return function callLog(req: Request, res: Response, next: NextFunction): void {
    const startedAt = performance.now();
    const { method, path } = req;
    res.once('close', () => {
      const { told = handleInQuery(req) } = res.locals as { told?: unknown };
      const ms = Math.round((performance.now() - startedAt) * 1000) / 1000;
      const isRoutine = method === 'GET' && ROUTINE.test(path) && res.statusCode < 400;
      onCall({ method, path, told, from: req.socket.remoteAddress, status: res.statusCode, ms }, isRoutine);
    });
    next();
  };
}

const handleInQuery = ({ query: { handle } }: Request): unknown =>
  typeof handle === 'string' ? { handle } : undefined;
