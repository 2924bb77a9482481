// Requests whose answers are never kept and never shared: with credentials, lists, other endpoints.
import type { IncomingMessage } from 'node:http';
import type { Request, RequestHandler, Response } from 'express';
import { ServiceError } from '../errors.js';
import { handleToPath } from '../handle/handle.js';
import { type RequestContext, contextOf } from '../http/context.js';
import { assertPlainPath, methodsAt } from './endpoints.js';
import type { Forward } from './forward.js';
import { handBack } from './relay-response.js';
import { readWhole } from './minted-handle.js';
import { readParameters, readQuestion } from '../http/query.js';
import { readSaid, tagOfRecord } from './record-etag.js';
import { unknownEndpoint } from './request-checks.js';
import type { WithBody } from '../http/request-body.js';
import { originForm } from '../http/target.js';

export interface PassThroughDeps {
  withBody: WithBody;
  forward: Forward;
  /** Longer records are refused: they are read as a whole for their ETag. */
  maxRecordBytes: number;
}

export function createPassThrough({ withBody, forward, maxRecordBytes }: PassThroughDeps): RequestHandler {
  return async function passThrough(req: Request, res: Response): Promise<void> {
    const context = contextOf(res);
    if (context.handle === undefined) assertEndpoint(req, res, context.target.path);
    context.result = 'bypass';
    const target = upstreamTarget(context);
    const answer = await withBody(req, (body) => forward(req, res, { target, body }));
    if (!isRecord(req, answer, context)) {
      await handBack(answer, res);
      return;
    }
    const body = await readWhole(answer, maxRecordBytes);
    await handBack(answer, res, { body, etag: tagOf(body, context) });
  };
}

/** A record as this caller may see it, which a conditional write may name by its ETag. */
const isRecord = (
  { method }: Request,
  { statusCode, headers }: IncomingMessage,
  { handle }: RequestContext,
): boolean =>
  method === 'GET' && handle !== undefined && statusCode === 200 && headers['content-encoding'] === undefined;

function tagOf(body: Buffer, { handle = '', target, format }: RequestContext): string | undefined {
  const said = readSaid(body.toString());
  return said && tagOfRecord(said, { handle, selection: readQuestion(readParameters(target.query)), format });
}

/** What names no handle is sent on as it came, so it must be what it seems to be. */
function assertEndpoint({ method }: Request, res: Response, path: string): void {
  assertPlainPath(path);
  const methods = methodsAt(path);
  if (methods === undefined) throw unknownEndpoint(method, path);
  if (methods.includes(method)) return;
  res.setHeader('Allow', methods.join(', '));
  throw new ServiceError('METHOD_REFUSED', { detail: method });
}

/** The target upstream: a handle is written anew, so that no URL parser on the way can misread it. */
export function upstreamTarget({ target, handle }: RequestContext): string {
  const path = handle === undefined ? target.path : `/api/handles/${handleToPath(handle)}`;
  return originForm({ path, query: target.query });
}
