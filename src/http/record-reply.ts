// Renders resolutions as replies of the record interface, which redirects send too when JSON is asked for.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { PreparedCache } from '../cache/prepared-cache.js';
import type { Context } from '../context.js';
import type { HandleRef } from '../handle/handle.js';
import type { Refused } from '../handle/outcome.js';
import {
  type Body,
  bodyOfEntry,
  bodyOfMembers,
  type Reply,
  sendReply,
  type Representation,
} from './reply.js';
import { type Freshness, cacheHeaders } from './cache-headers.js';
import { type Result, contextOf } from './context.js';
import type { RecordQuery } from './target.js';
import type { RunStepsOf } from './request-work.js';
import { type Resolution, existsBy, resultOf } from '../resolver/resolution.js';
import type { Steps } from '../time-slicer.js';
import { prepareResponse } from './prepared-responses.js';

export interface RecordReplyDeps {
  context: Context;
  freshness: Freshness;
  gzipMinBytes: number;
  /** Caches the response to a fresh hit in memory for the next request. */
  prepared: PreparedCache;
  runStepsOf: RunStepsOf;
}

interface HandleQuery {
  handle: HandleRef;
  query: RecordQuery;
}

type RenderDeps = Pick<RecordReplyDeps, 'freshness' | 'context'>;

function* renderResolution(
  resolution: Resolution,
  { handle, query }: HandleQuery,
  deps: RenderDeps,
): Steps<Reply> {
  const { status, json } = yield* bodyOfResolution(resolution, { handle, query });
  return { status, json, headers: headersOf(resolution, query, deps) };
}

function headersOf(
  resolution: Resolution,
  { authoritative }: Pick<RecordQuery, 'authoritative'>,
  { freshness, context }: RenderDeps,
): Record<string, string> {
  if (resolution.kind === 'entry') {
    return cacheHeaders({ resolution, authoritative, now: context.clock.now(), freshness });
  }
  const { retryAfter } = resolution.refused;
  return {
    'Cache-Control': 'no-store',
    ...(retryAfter === undefined ? {} : { 'Retry-After': retryAfter }),
  };
}

/** Returns the record length in characters; 0 for a refusal. */
export const charsOf = (resolution: Resolution): number =>
  resolution.kind === 'entry' ? resolution.entry.values.length : 0;

/** Renders status and JSON, without the headers. */
export function* bodyOfResolution(resolution: Resolution, { handle, query }: HandleQuery): Steps<Body> {
  if (resolution.kind === 'entry') return yield* bodyOfEntry(resolution.entry, handle.text, query);
  return bodyOfRefusal(resolution.refused, handle);
}

const bodyOfRefusal = ({ status, members, namesHandle }: Refused, handle: HandleRef): Body => ({
  status,
  json: bodyOfMembers(members, namesHandle ? handle.text : undefined),
});

interface Replied {
  resolution: Resolution;
  result: Result;
  /** The raw request target. */
  target: string;
  handle: HandleRef;
  status: number;
  made: Representation;
}

/** Counts a stale response, and prepares the response after a fresh hit in memory. */
function reportReply(
  { resolution, result, target, handle, status, made }: Replied,
  { context, prepared }: Pick<RecordReplyDeps, 'context' | 'prepared'>,
): void {
  if (resolution.kind !== 'entry') return;
  const { entry, from, stale } = resolution;
  if (stale !== undefined) context.metrics.countStale(stale);
  if (result !== 'hit' || from !== 'memory') return;
  prepareResponse(prepared, { target, handle, status, made, entry });
}

/** Sends the JSON of a resolved record on behalf of any interface. The request must have a context. */
export async function answerRecord(
  req: IncomingMessage,
  res: ServerResponse,
  { deps, handle, query, resolution }: HandleQuery & { deps: RecordReplyDeps; resolution: Resolution },
): Promise<void> {
  const { target } = contextOf(res);
  const result = resultOf(resolution, query);
  Object.assign(contextOf(res), { result, exists: existsBy(resolution) });
  const runSteps = deps.runStepsOf(res);
  const reply = await runSteps(renderResolution(resolution, { handle, query }, deps), charsOf(resolution));
  const made = await sendReply(req, res, { ...reply, gzipMinBytes: deps.gzipMinBytes, runSteps });
  reportReply({ resolution, result, target: target.raw, handle, status: reply.status, made }, deps);
}
