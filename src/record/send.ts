// Sends prepared responses.
import type { ServerResponse } from 'node:http';
import { type FreshnessRules, createHitLines } from '../http/cache-headers.js';
import { linesWithCors } from '../http/cors.js';
import type { FastHeaders } from '../http/fast-headers.js';
import { type HeaderLines, createSendRaw } from '../http/raw-response.js';
import { acceptsGzip, matchesEtag } from '../http/representation.js';
import type { PreparedResponse, PreparedVariant } from './response-cache.js';

/** The parts of a request on which the form of its response depends. */
export interface PreparedRecipient {
  method: string;
  headers: FastHeaders;
}

/** Returns the sent status; undefined if the variant for the caller is not prepared. */
type SendPrepared = (
  res: ServerResponse,
  prepared: PreparedResponse,
  recipient: PreparedRecipient,
  now: number,
) => number | undefined;

export function createSendPrepared({ freshness, redirectFreshness }: FreshnessRules): SendPrepared {
  const recordLines = createHitLines(freshness);
  const redirectLines = createHitLines(redirectFreshness);
  const sendRaw = createSendRaw();
  return function sendPrepared(
    res,
    prepared,
    { method, headers: { acceptEncoding, ifNoneMatch, origin } },
    now,
  ) {
    const variant = variantFor(prepared, acceptEncoding);
    if (variant === undefined) return undefined;
    const { head, commonLength, body, etag } = variant;
    const isKnown = etag !== undefined && ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, etag);
    const status = isKnown ? 304 : prepared.status;
    const hitLines = prepared.family === 'redirect' ? redirectLines : recordLines;
    const lines = (hitLines(prepared, now) + (isKnown ? head.slice(0, commonLength) : head)) as HeaderLines;
    const all = origin === undefined ? lines : linesWithCors(lines, origin);
    sendRaw(res, { status, lines: all, body: isKnown || method === 'HEAD' ? '' : body }, now);
    return status;
  };
}

const variantFor = (
  { isWorthGzip, gzip, identity }: PreparedResponse,
  acceptEncoding: string | undefined,
): PreparedVariant | undefined => (isWorthGzip && acceptsGzip(acceptEncoding) ? gzip : identity);
