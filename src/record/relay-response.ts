// Hands the upstream's own answer back: status, headers (doubled ones too) and body as they came.
import type { IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Response } from 'express';
import { VARY } from '../http/cache-headers.js';
import { exposeHeaders } from '../http/cors.js';
import { HOP_BY_HOP, connectionOptions } from './forwarded-headers.js';

/** Headers that this service decides itself. */
const OURS = new Set([
  'vary',
  'cache-control',
  'server',
  'date',
  'access-control-allow-origin',
  'access-control-expose-headers',
]);

/** What is known of an answer whose body was read already. */
export interface Read {
  body?: Buffer;
  etag?: string | undefined;
}

/** Design decision 12: an answer to a request with credentials, or to a write, is kept by no cache. */
export async function handBack(
  answer: IncomingMessage,
  res: Response,
  { body, etag }: Read = {},
): Promise<void> {
  res.status(answer.statusCode ?? 502);
  for (const [name, values] of headersOf(answer)) res.setHeader(name, values);
  if (etag !== undefined) res.setHeader('ETag', etag);
  // It has no body, so it must not tell of one (RFC 9110 §8.6).
  if (answer.statusCode === 204) res.removeHeader('Content-Length');
  res.setHeader('Cache-Control', 'no-store');
  res.setHeader('Cache-Status', 'handle-resolver-proxy; fwd=bypass');
  res.setHeader('Vary', VARY);
  exposeHeaders(res);
  if (body !== undefined) {
    res.end(body);
    return;
  }
  // A client that has gone, or an upstream that breaks off, ends both sides; there is nothing to answer.
  await pipeline(answer, res).catch(() => undefined);
}

function headersOf({ rawHeaders, headers }: IncomingMessage): Map<string, string[]> {
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
