// Every call of the admin listener in the log: who asked for what, and what became of it.
import type { NextFunction, Request, RequestHandler, Response } from 'express';

export interface AdminCall {
  method: string;
  path: string;
  /** What was purged, changed or looked for. */
  told?: unknown;
  from: string | undefined;
  status: number;
  ms: number;
}

export type OnCall = (call: AdminCall, isRoutine: boolean) => void;

/** What machines ask every few seconds, and the status page with what it loads. */
const ROUTINE = /^\/(?:healthz|readyz|metrics|stats|events|status\/[\w.]+)?$/;

/** Neither headers nor the query as it came: a credential cannot slip in. */
export function createCallLog(onCall: OnCall): RequestHandler {
  return function callLog(req: Request, res: Response, next: NextFunction): void {
    const startedAt = performance.now();
    const { method, path } = req;
    res.once('close', () => {
      const { told = toldByQuery(req) } = res.locals as { told?: unknown };
      const ms = Math.round((performance.now() - startedAt) * 1000) / 1000;
      const isRoutine = method === 'GET' && ROUTINE.test(path) && res.statusCode < 400;
      onCall({ method, path, told, from: req.socket.remoteAddress, status: res.statusCode, ms }, isRoutine);
    });
    next();
  };
}

function toldByQuery({ query }: Request): unknown {
  return typeof query['handle'] === 'string' ? { handle: query['handle'] } : undefined;
}
