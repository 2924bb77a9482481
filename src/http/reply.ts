// Sends replies: renders and compresses Handle JSON and text for the caller, with 304 by ETag.
import { hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { RecordContent } from '../cache/entry.js';
import { type Body, bodyOfRecord } from '../handle/outcome.js';
import { type Bytes, fromBuffer, toBuffer, toBytes } from '../handle/bytes.js';
import { indentJson } from '../handle/json.js';
import type { Selection } from '../handle/value.js';
import { selectJson } from '../resolver/parsed-records.js';
import type { Steps } from '../time-slicer.js';
import { varyOf } from './cache-headers.js';
import { contextOf } from './context.js';
import { exposing } from './cors.js';
import { isNotModified } from './preconditions.js';
import { type HeaderLines, linesOf, sendByNode } from './raw-response.js';
import type { Format } from './target.js';

/** Spelled as in the recordings (Jetty 9). */
export const JSON_TYPE = 'application/json;charset=utf-8';
const JSONP_TYPE = 'application/javascript;charset=utf-8';
export const NO_STORE = { 'Cache-Control': 'no-store' };

export interface RecordForm {
  /** The handle as spelled by the caller. */
  handle: string;
  selection: Selection;
  format: Format;
}

/** Computes the ETag of a record in the given form, in steps. */
export function* recordEtag(record: RecordContent, form: RecordForm, encoding: Encoding): Steps<string> {
  const { text } = yield* renderRecord(record, form);
  yield;
  return etagOf(text, encoding);
}

/** A body as it is sent, before compression, with what its header lines depend on. */
interface Content {
  /** Clients can revalidate content with status 200. */
  status: number;
  contentType: string;
  text: string;
  /** Request headers that the content depends on, in addition to the common ones. */
  varies?: readonly string[] | undefined;
  /** Header lines of the record, as alternating names and values. */
  lines?: readonly string[] | undefined;
  /** Minimum body length for compression (bytes); without it, the text is not compressed. */
  gzipMinBytes?: number | undefined;
}

export function* renderRecord(
  record: RecordContent,
  { handle, selection, format }: RecordForm,
): Steps<Content> {
  const body = bodyOfRecord(record, handle, yield* selectJson(record, selection));
  yield;
  return yield* renderBody(body, format);
}

/** Renders a body in steps: indented for `pretty` if that is not too long, wrapped as JSONP for a callback. */
export function* renderBody({ status, json }: Body, format: Format): Steps<Content> {
  const text = format.pretty ? yield* indentJson(json) : json;
  yield;
  const { contentType, before, after } = frameOf(format);
  return { status, contentType, text: before + text + after };
}

/** Returns the media type of a body, and the text around its JSON. */
export function frameOf({ callback }: Format): { contentType: string; before: string; after: string } {
  if (callback === undefined) return { contentType: JSON_TYPE, before: '', after: '' };
  return { contentType: JSONP_TYPE, before: `${callback}(`, after: ');' };
}

export type Encoding = 'identity' | 'gzip';

/** A response body in one encoding, with header lines. */
export interface Representation {
  status: number;
  encoding: Encoding;
  /** False for a body too short to compress. */
  isWorthGzip: boolean;
  body: Bytes;
  etag: string | undefined;
  /** Vary and ETag, which a 304 also contains (RFC 9110 §15.4.5). */
  common: HeaderLines;
  /** Content-Encoding, Content-Type and Content-Length. */
  ofBody: HeaderLines;
}

/** Creates the representation that a request accepts; returns a promise only for compression. */
function represent(req: IncomingMessage, content: Content): Representation | Promise<Representation> {
  const body = toBytes(content.text);
  const isWorthGzip = body.length >= (content.gzipMinBytes ?? Infinity);
  if (!isWorthGzip || !acceptsGzip(req.headers['accept-encoding']?.toString()))
    return representAs('identity', content, body, isWorthGzip);
  return compress(toBuffer(body)).then((compressed) =>
    representAs('gzip', content, fromBuffer(compressed), isWorthGzip),
  );
}

/** Creates the representation of a body that is rendered first, in steps. */
export function* representInSteps(
  req: IncomingMessage,
  rendering: Steps<Content>,
  { lines, gzipMinBytes }: { lines?: readonly string[] | undefined; gzipMinBytes?: number | undefined },
): Steps<Representation | Promise<Representation>> {
  const { status, contentType, text } = yield* rendering;
  yield;
  return represent(req, { status, contentType, text, lines, gzipMinBytes });
}

function representAs(
  encoding: Encoding,
  { status, text, contentType, varies, lines }: Content,
  body: Bytes,
  isWorthGzip: boolean,
): Representation {
  const etag = status === 200 ? etagOf(text, encoding) : undefined;
  const common = ['Vary', varyOf(varies)];
  if (etag !== undefined) common.push('ETag', etag);
  if (lines !== undefined) common.push(...lines);
  const ofBody = ['Content-Type', contentType, 'Content-Length', String(body.length)];
  if (encoding === 'gzip') ofBody.unshift('Content-Encoding', 'gzip');
  return { status, encoding, isWorthGzip, body, etag, common: linesOf(common), ofBody: linesOf(ofBody) };
}

const compress = promisify(gzip);

/** Returns a strong ETag of the UTF-8 bytes before encoding; gzip has a different ETag (RFC 9110 §8.8.3.3). */
const etagOf = (text: string, encoding: Encoding): string =>
  etagOfDigest(hash('sha256', text, 'base64url'), encoding);

/** Returns the ETag of a text with this SHA-256 digest in base64url. */
export function etagOfDigest(sha256: string, encoding: Encoding): string {
  const digest = sha256.slice(0, 22);
  return encoding === 'gzip' ? `"${digest}-gz"` : `"${digest}"`;
}

/** Memoised decisions: clients send few distinct, short Accept-Encoding values. */
const decisions = new Map<string, boolean>();
const MAX_DECISIONS = 1000;
const MAX_KNOWN_CHARS = 256;

/** Whether gzip has at least the weight of identity (RFC 9110 §12.5.3). */
export function acceptsGzip(acceptEncoding: string | undefined): boolean {
  if (acceptEncoding === undefined) return false;
  if (acceptEncoding.length > MAX_KNOWN_CHARS) return prefersGzip(acceptEncoding);
  let decision = decisions.get(acceptEncoding);
  if (decision === undefined) {
    decision = prefersGzip(acceptEncoding);
    if (decisions.size >= MAX_DECISIONS) decisions.clear();
    decisions.set(acceptEncoding, decision);
  }
  return decision;
}

function prefersGzip(acceptEncoding: string): boolean {
  const weights = new Map<string, number>();
  for (const part of acceptEncoding.toLowerCase().split(',')) {
    const [name = '', ...parameters] = part.split(';').map((piece) => piece.trim());
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    weights.set(name, weight === undefined ? 1 : Number(weight));
  }
  const gzipWeight = weights.get('gzip') ?? weights.get('x-gzip') ?? weights.get('*') ?? 0;
  return gzipWeight > 0 && gzipWeight >= (weights.get('identity') ?? 0);
}

export interface ReplyHead {
  headers: Record<string, string>;
  /** The time (ms), if it is already known. */
  now?: number;
}

/** JSON, which is sent in the format that the request asks for. */
export interface Reply extends ReplyHead, Body {
  gzipMinBytes?: number;
}

export interface TextReply extends ReplyHead, Content {}

/** Sends a representation, or 304 if the caller has it (RFC 9110 §15.4.5), in one write at the end of the turn. */
export async function sendMade(
  req: IncomingMessage,
  res: ServerResponse,
  { headers, now }: ReplyHead,
  made: Representation,
): Promise<void> {
  await endOfTurn();
  const isKnown = made.etag !== undefined && isNotModified(req.headers['if-none-match'], made.etag);
  const ofHeaders = linesOf(Object.entries(headers).flat());
  const lines = (ofHeaders + made.common + (isKnown ? '' : made.ofBody)) as HeaderLines;
  const { sendRaw = sendByNode } = contextOf(res);
  const body = isKnown || req.method === 'HEAD' ? '' : made.body;
  sendRaw(res, { status: isKnown ? 304 : made.status, lines: exposing(res, lines), body }, now);
}

let ending: Promise<void> | undefined;

/**
 * Resolves at the end of the event-loop turn, so that all responses of a turn are written together, because a
 * write that wakes a sleeping client costs twice as much.
 */
const endOfTurn = (): Promise<void> =>
  (ending ??= new Promise((resolve) => {
    setImmediate(() => {
      ending = undefined;
      resolve();
    });
  }));

/** Sends text, or 304 if the client has the current ETag. */
export async function sendText(req: IncomingMessage, res: ServerResponse, reply: TextReply): Promise<void> {
  await sendMade(req, res, reply, await represent(req, reply));
}

/** Sends JSON in the requested format. */
export async function sendReply(req: IncomingMessage, res: ServerResponse, reply: Reply): Promise<void> {
  const { format, runSteps } = contextOf(res);
  const rendering = renderBody(reply, format);
  await sendMade(req, res, reply, await runSteps(representInSteps(req, rendering, reply), reply.json.length));
}
