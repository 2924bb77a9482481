// Renders resolutions as replies of the record interface, which redirects send too when JSON is asked for.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Host } from '../host.js';
import type { Config } from '../config/schema.js';
import type { HandleRef } from '../handle/handle.js';
import type { Refused } from '../handle/outcome.js';
import type { Resolution } from '../resolver/loader.js';
import { selectJson } from '../resolver/parsed-records.js';
import { type Freshness, cacheHeaders, freshnessRules, recordLines } from './cache-headers.js';
import { contextOf, noteRead } from './context.js';
import { prepareResponse } from './prepared-responses.js';
import { type Body, bodyOfEntry, bodyOfMembers, representJson, sendMade } from './reply.js';
import type { RecordQuery } from './target.js';

interface HandleQuery {
  handle: HandleRef;
  query: RecordQuery;
}

/** Sends the JSON of a resolved record on behalf of any interface. The request must have a context. */
export type AnswerRecord = (
  req: IncomingMessage,
  res: ServerResponse,
  record: HandleQuery & { resolution: Resolution },
) => Promise<void>;

export function createAnswerRecord(config: Config, host: Host): AnswerRecord {
  const { clock, metrics, runStepsOf } = host;
  const { gzipMinBytes } = config.http;
  const { freshness } = freshnessRules(config, host);
  const cache = host.preparedCache();
  return async function answerRecord(req, res, { handle, query, resolution }) {
    const context = contextOf(res);
    noteRead(context, resolution, query);
    const lines = resolution.kind === 'entry' ? recordLines(host, resolution, () => [handle]) : undefined;
    const runSteps = runStepsOf(res);
    const selected =
      resolution.kind === 'entry'
        ? await runSteps(selectJson(resolution.entry, query), charsOf(resolution))
        : undefined;
    const { status, json } = bodyOfResolution(resolution, handle, selected);
    const now = clock.now();
    const headers = replyHeaders(resolution, query.authoritative, now, freshness);
    const made = await representJson(req, context, { status, json, lines, gzipMinBytes }, runSteps);
    await sendMade(req, res, { status, headers, now }, made);
    if (resolution.kind !== 'entry') return;
    const { entry, from, stale } = resolution;
    if (stale !== undefined) metrics.countStale(stale);
    if (context.result === 'hit' && from === 'memory')
      prepareResponse(cache, { target: context.target.raw, handle, status, made, entry });
  };
}

function replyHeaders(
  resolution: Resolution,
  authoritative: boolean,
  now: number,
  freshness: Freshness,
): Record<string, string> {
  if (resolution.kind === 'entry') return cacheHeaders({ resolution, authoritative, now, freshness });
  const { retryAfter } = resolution.refused;
  return {
    'Cache-Control': 'no-store',
    ...(retryAfter === undefined ? {} : { 'Retry-After': retryAfter }),
  };
}

/** Returns the record length in characters; 0 for a refusal. */
export const charsOf = (resolution: Resolution): number =>
  resolution.kind === 'entry' ? resolution.entry.values.length : 0;

/** Renders status and JSON, without the headers; `selected`: the values of an entry that match the query. */
export const bodyOfResolution = (
  resolution: Resolution,
  handle: HandleRef,
  selected: string | undefined,
): Body =>
  resolution.kind === 'entry'
    ? bodyOfEntry(resolution.entry, handle.text, selected)
    : bodyOfRefusal(resolution.refused, handle);

const bodyOfRefusal = ({ status, members, namesHandle }: Refused, handle: HandleRef): Body => ({
  status,
  json: bodyOfMembers(members, namesHandle ? handle.text : undefined),
});
