// Renders resolutions as replies of the record interface, which redirects send too when JSON is asked for.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Host } from '../host.js';
import type { Config } from '../config/schema.js';
import { type Body, type Refused, bodyOfMembers, bodyOfRecord } from '../handle/outcome.js';
import type { HandleRef } from '../handle/handle.js';
import type { Selection } from '../handle/value.js';
import type { Resolution } from '../resolver/resolution.js';
import { selectJson } from '../resolver/parsed-records.js';
import type { Steps } from '../time-slicer.js';
import { cacheHeaders, recordFreshness, recordLines } from './cache-headers.js';
import { type RequestContext, noteRead } from './context.js';
import { prepareResponse } from './prepared-responses.js';
import { renderRecord, representInSteps, sendMade, sendReply } from './reply.js';
import type { RecordQuery } from './target.js';

/** Sends the JSON of a resolved record on behalf of any interface. */
export type AnswerRecord = (
  req: IncomingMessage,
  res: ServerResponse,
  context: RequestContext,
  record: { handle: HandleRef; query: RecordQuery; resolution: Resolution },
) => Promise<void>;

export function createAnswerRecord(config: Config, host: Host): AnswerRecord {
  const { metrics } = host;
  const { gzipMinBytes } = config.http;
  const freshness = recordFreshness(config);
  const cache = host.preparedCache.current;
  return async function answerRecord(req, res, context, { handle, query, resolution }) {
    noteRead(context, resolution, query);
    const { family, format, target, runSteps } = context;
    if (resolution.kind !== 'entry') {
      const { refused } = resolution;
      const reply = { ...bodyOfRefusal(refused, handle), headers: headersOfRefusal(refused), gzipMinBytes };
      return sendReply(req, res, reply);
    }
    const { entry, from, stale } = resolution;
    const lines = recordLines(host, resolution, [handle]);
    const rendering = renderRecord(entry, { handle: handle.text, selection: query, format });
    const representing = representInSteps(req, rendering, { lines, gzipMinBytes });
    const made = await runSteps(representing, entry.values.length);
    const now = resolution.readAt;
    const headers = cacheHeaders({ resolution, authoritative: query.authoritative, now, freshness });
    await sendMade(req, res, { headers, now }, made);
    if (stale !== undefined) metrics.countStale(stale);
    if (context.result === 'hit' && from === 'memory')
      prepareResponse(cache, { family, target: target.raw, handle, made, entry });
  };
}

/** Returns the record length in characters; 0 for a refusal. */
export const charsOf = (resolution: Resolution): number =>
  resolution.kind === 'entry' ? resolution.entry.values.length : 0;

/** Renders status and JSON of what a query selects, without the headers, in steps. */
export function* bodyOfResolution(resolution: Resolution, handle: HandleRef, query: Selection): Steps<Body> {
  if (resolution.kind !== 'entry') return bodyOfRefusal(resolution.refused, handle);
  return bodyOfRecord(resolution.entry, handle.text, yield* selectJson(resolution.entry, query));
}

const bodyOfRefusal = ({ status, members, namesHandle }: Refused, handle: HandleRef): Body => ({
  status,
  json: bodyOfMembers(members, namesHandle ? handle.text : undefined),
});

const headersOfRefusal = ({ retryAfter }: Refused): Record<string, string> => ({
  'Cache-Control': 'no-store',
  ...(retryAfter === undefined ? {} : { 'Retry-After': retryAfter }),
});
