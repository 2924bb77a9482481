// Forwards an upstream response: status, end-to-end headers (including repeated headers) and body.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { ServiceError } from '../errors.js';
import { extractObject, parseJson } from '../handle/json.js';
import { VARY } from '../http/cache-headers.js';
import { exposeHeaders } from '../http/cors.js';
import { forbidSniffing } from '../http/raw-response.js';
import { MAX_ANSWER_BYTES, decodeBody } from '../upstream/response.js';
import { HOP_BY_HOP, connectionOptions } from './forwarded-headers.js';

/** Headers that this proxy sets itself. */
const OURS = new Set([
  'vary',
  'cache-control',
  'server',
  'date',
  'x-content-type-options',
  'access-control-allow-origin',
  'access-control-expose-headers',
]);

/** Forwards a response as `no-store`, because it belongs to a write or to a read that is never cached. */
export async function forwardResponse(
  response: IncomingMessage,
  res: ServerResponse,
  /** `body` is set if it has already been read. */
  { body, etag }: { body?: Buffer | undefined; etag?: string | undefined },
): Promise<void> {
  res.statusCode = response.statusCode ?? 502;
  for (const [name, values] of endToEndHeaders(response)) res.setHeader(name, values);
  if (etag !== undefined) res.setHeader('ETag', etag);
  // A 204 must not have Content-Length (RFC 9110 §8.6).
  if (response.statusCode === 204) res.removeHeader('Content-Length');
  res.setHeader('Cache-Control', 'no-store');
  res.setHeader('Cache-Status', 'handle-resolver-proxy; fwd=bypass');
  res.setHeader('Vary', VARY);
  forbidSniffing(res);
  exposeHeaders(res);
  if (body !== undefined) {
    res.end(body);
    return;
  }
  // If the client disconnects or the upstream aborts, both sides are closed, because no response can follow.
  await pipeline(response, res).catch(() => undefined);
}

function endToEndHeaders({ rawHeaders, headers }: IncomingMessage): Map<string, string[]> {
  const named = connectionOptions(headers);
  const kept = new Map<string, string[]>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name, value] = [rawHeaders[at] ?? '', rawHeaders[at + 1] ?? ''];
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.has(lower) || OURS.has(lower) || named.has(lower)) continue;
    kept.set(name, [...(kept.get(name) ?? []), value]);
  }
  return kept;
}

/** Reads the whole body. @throws ServiceError UPSTREAM_INVALID_RESPONSE if it is aborted or too long */
export async function readResponseBody(response: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const body = await peekResponseBody(response, maxBytes);
  if (body !== undefined) return body;
  response.destroy();
  throw badResponse('it is too long');
}

/**
 * Reads the body. Returns undefined if it exceeds `maxBytes`; it can then still be forwarded. @throws
 * ServiceError if it is aborted
 */
export async function peekResponseBody(
  response: IncomingMessage,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of response.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > maxBytes) break;
    }
  } catch (cause) {
    throw badResponse('it was aborted', cause);
  }
  const body = Buffer.concat(chunks);
  if (length <= maxBytes) return body;
  response.unshift(body);
  return undefined;
}

const badResponse = (problem: string, cause?: unknown): ServiceError =>
  new ServiceError('UPSTREAM_INVALID_RESPONSE', { diagnosis: { cause: problem }, cause });

/** Decodes the content codings of a body; undefined if decoding fails or exceeds `maxBytes`. */
export function decodeResponseBody(
  { statusCode: status = 0, headers }: Pick<IncomingMessage, 'statusCode' | 'headers'>,
  body: Buffer,
  maxBytes: number,
): Promise<Buffer | undefined> {
  return decodeBody({ status, headers, body }, maxBytes).catch(() => undefined);
}

/** Reads the handle and the response code of a Handle response, if present. The body may be compressed. */
export async function parseAnswer(
  response: Pick<IncomingMessage, 'statusCode' | 'headers'>,
  body: Buffer,
): Promise<{
  handle: string | undefined;
  responseCode: number | undefined;
}> {
  const decoded = await decodeResponseBody(response, body, MAX_ANSWER_BYTES);
  const { handle, responseCode } = decoded === undefined ? {} : membersOf(decoded);
  return {
    handle: typeof handle === 'string' ? handle : undefined,
    responseCode: typeof responseCode === 'number' ? responseCode : undefined,
  };
}

function membersOf(body: Buffer): { handle?: unknown; responseCode?: unknown } {
  try {
    return parseJson(extractObject(body.toString('utf8'))) as { handle?: unknown; responseCode?: unknown };
  } catch {
    return {};
  }
}
