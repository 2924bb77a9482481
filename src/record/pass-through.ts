// Relays requests whose responses are never cached and never shared: with credentials, lists, other endpoints.
import type { IncomingMessage } from 'node:http';
import type { Request, Response } from 'express';
import { type RequestContext, contextOf } from '../http/context.js';
import { readParameters, readRecordQuery } from '../http/query.js';
import type { WithBody } from '../http/request-body.js';
import type { RunStepsOf } from '../http/request-work.js';
import type { Steps } from '../time-slicer.js';
import { type Forward, upstreamTarget } from './forward.js';
import { parseRecord, recordEtag } from './record-etag.js';
import { readResponseBody, relayResponse } from './relay-response.js';
import { assertPlain } from './request-checks.js';

interface PassThroughDeps {
  withBody: WithBody;
  forward: Forward;
  /** Longer records are refused: they are read as a whole for their ETag. */
  maxRecordBytes: number;
  runStepsOf: RunStepsOf;
}

export type PassThrough = (req: Request, res: Response) => Promise<void>;

export function createPassThrough({
  withBody,
  forward,
  maxRecordBytes,
  runStepsOf,
}: PassThroughDeps): PassThrough {
  return async function passThrough(req: Request, res: Response): Promise<void> {
    const context = contextOf(res);
    if (context.handle === undefined) assertPlain(context.target.path);
    context.result = 'bypass';
    const target = upstreamTarget(context);
    const response = await withBody(req, (body) => forward(req, res, { target, body }));
    if (!isRecord(req, response, context)) {
      await relayResponse(response, res);
      return;
    }
    const body = await readResponseBody(response, maxRecordBytes);
    const etag = await runStepsOf(res)(etagFor(body, context), body.length);
    await relayResponse(response, res, { body, etag });
  };
}

/** A record as this caller may see it: a conditional write may name it by its ETag. */
const isRecord = (
  { method }: Request,
  { statusCode, headers }: IncomingMessage,
  { handle }: RequestContext,
): boolean =>
  method === 'GET' && handle !== undefined && statusCode === 200 && headers['content-encoding'] === undefined;

function* etagFor(body: Buffer, { handle = '', target, format }: RequestContext): Steps<string | undefined> {
  const record = yield* parseRecord(body.toString());
  const selection = readRecordQuery(readParameters(target.query));
  return record && (yield* recordEtag(record, { handle, selection, format }));
}
