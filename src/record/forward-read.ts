// Reads that are forwarded and never cached: GET and HEAD that read.ts leaves, and POST of a handle.
import type { Request, RequestHandler, Response } from 'express';
import { contextOf } from '../http/context.js';
import type { ChecksLogin } from '../http/identity.js';
import { readParameters } from '../http/query.js';
import { rawHandleOf, readHandle } from '../http/target.js';
import type { LimitMiss } from '../upstream/caller.js';
import type { PassThrough } from './pass-through.js';
import { isList } from './record-request.js';

export interface ForwardReadDeps {
  passThrough: PassThrough;
  limitMiss: LimitMiss;
  checksLogin: ChecksLogin;
}

/** A read that is forwarded is a miss like others, unless the Handle server judges its login. */
export function createForwardRead({ passThrough, limitMiss, checksLogin }: ForwardReadDeps): RequestHandler {
  return async function forwardRead(req: Request, res: Response): Promise<void> {
    parseHandle(res);
    const { handle, caller } = contextOf(res);
    if (handle === undefined || checksLogin(handle, req.headers.authorization)) {
      await passThrough(req, res);
      return;
    }
    const forward = async (): Promise<void> => {
      const closed = new Promise<void>((resolve) => res.once('close', resolve));
      await passThrough(req, res);
      await closed;
    };
    // A client that leaves early learns nothing, and neither does this count.
    const isAnswered = (): boolean => res.writableFinished && res.statusCode < 500;
    await limitMiss(caller, forward, () => (isAnswered() ? res.statusCode === 404 : undefined));
  };
}

/** With credentials a wrong password has to be 401 even for public data. A list has no handle. */
function parseHandle(res: Response): void {
  const context = contextOf(res);
  const rawHandle = rawHandleOf(context.target.path) ?? '';
  if (!isList(rawHandle, readParameters(context.target.query))) context.handle = readHandle(rawHandle);
}
