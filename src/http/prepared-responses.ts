// Prepared responses for records and redirects, by raw request target; a single function sends and reports them.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Host } from '../host.js';
import type { AnsweredEntry, Prepared, PreparedCache, PreparedName } from '../cache/prepared-cache.js';
import type { Config } from '../config/schema.js';
import type { PreparedHit } from '../observe/hits.js';
import { createHitLines, recordFreshness, redirectFreshness } from './cache-headers.js';
import { createAcceptRequestId } from './context.js';
import { linesWithCors } from './cors.js';
import { isNotModified } from './preconditions.js';
import type { HeaderLines, SendRaw } from './raw-response.js';
import { type Representation, acceptsGzip } from './reply.js';
import type { RequestCheck } from './request-steps.js';

/** A response that depends only on its target and an entry in memory. */
interface Hit extends AnsweredEntry {
  /** The interface that the request counts for. */
  family: PreparedHit['family'];
  /** The raw request target. */
  target: string;
  made: Representation;
}

/** A representation that is ready to be sent. */
interface PreparedVariant {
  /** The body, with one character per byte: Node sends it together with the headers in a single write. */
  body: string;
  /** Vary and ETag, which a 304 also contains, then encoding, type and length of the body. */
  head: HeaderLines;
  /** Length of the head lines that a 304 also contains. */
  commonLength: number;
  etag: string | undefined;
}

/** Doubles as the report of a full GET, because a separate object would cost each hit another CPU cache line. */
interface PreparedResponse extends PreparedHit, Prepared {
  target: string;
  /** The interface whose cache headers it has. */
  freshness: 'record' | 'redirect';
  identity: PreparedVariant | undefined;
  gzip: PreparedVariant | undefined;
  /** Whether the body is long enough to be compressed. */
  isWorthGzip: boolean;
}

/** Prepares the response to a hit; undefined if memory no longer holds its entry. */
export function prepareResponse(cache: PreparedCache, hit: Hit): PreparedResponse | undefined {
  const { made, target } = hit;
  return cache.prepare(target as PreparedName<PreparedResponse>, hit, (start, known) => {
    const prepared = known ?? newResponse(hit, start);
    prepared[made.encoding] = variantOf(made);
    prepared.bytes = (prepared.identity?.body.length ?? 0) + (prepared.gzip?.body.length ?? 0);
    return prepared;
  });
}

/** Names each field: V8 stores spread fields in a second object, which costs each hit another CPU cache line. */
const newResponse = ({ family, target, handle, entry, made }: Hit, start: Prepared): PreparedResponse => ({
  key: start.key,
  at: start.at,
  stamp: start.stamp,
  requestedAt: start.requestedAt,
  staleAt: start.staleAt,
  refreshOfferedAt: start.refreshOfferedAt,
  dependency: start.dependency,
  bytes: start.bytes,
  // A redirect request for JSON (`action=api`) gets those of the record interface, which never redirects.
  freshness: made.status === 301 || made.status === 302 ? 'redirect' : 'record',
  family,
  method: 'GET',
  handle: handle.text,
  target,
  status: made.status,
  exists: entry.kind !== 'not-found',
  repeats: 0,
  identity: undefined,
  gzip: undefined,
  isWorthGzip: made.isWorthGzip,
});

function variantOf({ body, common, ofBody, etag }: Representation): PreparedVariant {
  // The head is copied into a flat string: a rope of many pieces would be flattened for each response.
  const head = Buffer.from(common + ofBody, 'latin1').toString('latin1') as HeaderLines;
  return { body, head, commonLength: common.length, etag };
}

function createSendHit(config: Config, host: Host, sendRaw: SendRaw) {
  const { hits } = host;
  const acceptRequestId = createAcceptRequestId(host.isTrustedProxy);
  const hitLines = {
    record: createHitLines(recordFreshness(config)),
    redirect: createHitLines(redirectFreshness(config, host.clock)),
  };
  /** Sends and reports a prepared response. Returns false if none exists in the client's encoding. */
  return function sendHit(
    res: ServerResponse,
    prepared: PreparedResponse,
    headers: FastHeaders,
    now: number,
  ): boolean {
    const startedAt = hits.startTimer();
    const { req } = res;
    const { method = '' } = req;
    const variant = variantFor(prepared, headers.acceptEncoding);
    if (variant === undefined) return false;
    const { head, commonLength, body, etag } = variant;
    const isKnown = etag !== undefined && isNotModified(headers.ifNoneMatch, etag);
    const status = isKnown ? 304 : prepared.status;
    const ofEntry = hitLines[prepared.freshness](prepared, now);
    const lines = (ofEntry + (isKnown ? head.slice(0, commonLength) : head)) as HeaderLines;
    const { origin } = headers;
    const all = origin === undefined ? lines : linesWithCors(lines, origin);
    sendRaw(res, { status, lines: all, body: isKnown || method === 'HEAD' ? '' : body }, now);
    hits.count(hitReportOf(prepared, method, status), acceptRequestId(headers.requestId, req), startedAt);
    return true;
  };
}

/** Returns the report, usually the prepared response itself, so that log and metrics can cache by identity. */
function hitReportOf(prepared: PreparedResponse, method: string, status: number): PreparedHit {
  if (method === prepared.method && status === prepared.status) return prepared;
  const { family, handle, target, exists } = prepared;
  return { family, handle, target, method, status, exists, repeats: 0 };
}

const variantFor = (
  { isWorthGzip, gzip, identity }: PreparedResponse,
  acceptEncoding: string | undefined,
): PreparedVariant | undefined => (isWorthGzip && acceptsGzip(acceptEncoding) ? gzip : identity);

/** Sends the prepared response to a raw request target; returns false if none is current. */
export type SendPrepared = (req: IncomingMessage, res: ServerResponse, target: string) => boolean;

/** Creates the sender of prepared responses, which reads nothing of a request but its target and a few headers. */
export function createSendPrepared(
  config: Config,
  host: Host,
  check: RequestCheck,
  sendRaw: SendRaw,
): SendPrepared {
  const { clock } = host;
  const cache = host.preparedCache.current;
  const sendHit = createSendHit(config, host, sendRaw);
  return function sendPrepared(req, res, target) {
    const { method } = req;
    if (method !== 'GET' && method !== 'HEAD') return false;
    const headers = scanHeaders(req.rawHeaders, host.pseudonym);
    if (headers.hasCredentials || check(req, target, headers.isLoop) !== undefined) return false;
    const prepared = cache.find(target as PreparedName<PreparedResponse>);
    if (prepared === undefined) return false;
    const at = clock.now();
    return cache.use(prepared, at) && sendHit(res, prepared, headers, at);
  };
}

interface FastHeaders {
  acceptEncoding: string | undefined;
  ifNoneMatch: string | undefined;
  origin: string | undefined;
  requestId: string | undefined;
  /** Whether the request has `Authorization`, which forbids a shared response. */
  hasCredentials: boolean;
  /** Whether `Via` contains this proxy's pseudonym (RFC 9110 §7.6.3). */
  isLoop: boolean;
}

/** Reads a few headers; the object `req.headers` would be much of a hit's cost. `pseudonym`: this proxy's name in `Via`. */
function scanHeaders(raw: readonly string[], pseudonym: string): FastHeaders {
  const found: FastHeaders = {
    acceptEncoding: undefined,
    ifNoneMatch: undefined,
    origin: undefined,
    requestId: undefined,
    hasCredentials: false,
    isLoop: false,
  };
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string;
    // Skips most headers, such as Host, User-Agent and Connection, by length alone.
    if (NAME_LENGTHS[name.length] === 1)
      noteScanned(found, name.toLowerCase(), raw[at + 1] as string, pseudonym);
  }
  return found;
}

function noteScanned(found: FastHeaders, name: string, value: string, pseudonym: string): void {
  if (name === 'via') found.isLoop ||= value.includes(pseudonym);
  else if (name === 'authorization') found.hasCredentials = true;
  const field = FIELDS.get(name);
  if (field === undefined) return;
  const before = found[field];
  // Joins repeated headers like `req.headers`.
  found[field] = before === undefined ? value : `${before}, ${value}`;
}

const FIELDS = new Map<string, 'acceptEncoding' | 'ifNoneMatch' | 'origin' | 'requestId'>([
  ['accept-encoding', 'acceptEncoding'],
  ['if-none-match', 'ifNoneMatch'],
  ['origin', 'origin'],
  ['x-request-id', 'requestId'],
]);

/** Contains 1 at each length of a scanned header name, else 0. */
const NAME_LENGTHS: readonly number[] = Array.from({ length: 64 }, (_, length) =>
  ['via', 'authorization', ...FIELDS.keys()].some((name) => name.length === length) ? 1 : 0,
);
