// Requests whose answers are never kept and never shared: with credentials, lists, other endpoints.
import type { IncomingMessage } from 'node:http';
import type { Request, RequestHandler, Response } from 'express';
import { handleToPath } from '../handle/handle.js';
import { type RequestContext, contextOf } from './context.js';
import type { Forward } from './forwarder.js';
import { handBack } from './hand-back.js';
import { readWhole } from './minted.js';
import { readParameters, readQuestion } from './question.js';
import { readSaid, tagOfRecord } from './record-tag.js';
import type { WithBody } from './request-body.js';

export interface PassThroughDeps {
  withBody: WithBody;
  forward: Forward;
  /** Longer records are refused: they are read as a whole for their ETag. */
  maxRecordBytes: number;
}

export function createPassThrough({ withBody, forward, maxRecordBytes }: PassThroughDeps): RequestHandler {
  return async function passThrough(req: Request, res: Response): Promise<void> {
    const context = contextOf(res);
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

/** The target upstream: a handle is written anew, so that no URL parser on the way can misread it. */
export function upstreamTarget({ target, handle }: RequestContext): string {
  const path = handle === undefined ? target.path : `/api/handles/${handleToPath(handle)}`;
  return target.query === '' ? path : `${path}?${target.query}`;
}
