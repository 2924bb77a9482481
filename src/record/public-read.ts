// Serves reads with a login, and lists, of a server that has neither logins nor private values.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { contextOf } from '../http/context.js';
import { pageIn, readParameters, readRecordQuery } from '../http/query.js';
import { sendReply } from '../http/reply.js';
import type { RunStepsOf } from '../http/request-work.js';
import type { Resolver } from '../resolver/resolver.js';
import type { OriginOf } from '../write/origin-record.js';

export interface PublicReadDeps {
  originOf: OriginOf;
  resolver: Pick<Resolver<unknown>, 'refOf'>;
  runStepsOf: RunStepsOf;
}

/** Serves a record or a list; returns false, and sends no response, if the request must be forwarded. */
export async function readPublic(
  req: IncomingMessage,
  res: ServerResponse,
  deps: PublicReadDeps,
): Promise<boolean> {
  const { handle, target, caller } = contextOf(res);
  const parameters = readParameters(target.query);
  const prefix = parameters.get('prefix') ?? '';
  const named = handle ?? deps.resolver.refOf(`${prefix}/`);
  const origin = deps.originOf(named, { authorization: undefined, caller });
  const source = origin.server?.source;
  if (source === undefined || source.forwards) return false;
  if (req.method !== 'GET' && req.method !== 'HEAD') throw source.refusal();
  const { authoritative, ...selection } = readRecordQuery(parameters);
  const { status, body } = await (handle === undefined
    ? origin.list(prefix, pageIn(parameters))
    : origin.get({ authoritative, selection }));
  contextOf(res).result = 'bypass';
  const headers = { 'Cache-Control': 'no-store' };
  const runSteps = deps.runStepsOf(res);
  await sendReply(req, res, { status, json: body, headers, gzipMinBytes: Infinity, runSteps });
  return true;
}
