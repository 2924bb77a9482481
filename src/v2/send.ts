// Sends an answer of ePIC v2 with the headers that all of them carry.
import type { Response } from 'express';
import { VARY } from '../http/cache-headers.js';
import { exposeHeaders } from '../http/cors.js';

export interface Payload {
  status: number;
  headers: Record<string, string>;
  /** Without a body there is no `Content-Type` either. */
  contentType?: string;
  body?: string;
}

export const JSON_TYPE = 'application/json;charset=utf-8';

/** Answers to callers who logged in are kept by no cache (design decision 12). */
export const PRIVATE = { 'Cache-Control': 'no-store' };

export function send(res: Response, { status, headers, contentType, body }: Payload): void {
  res.status(status);
  res.setHeaders(new Map(Object.entries({ ...headers, Vary: VARY })));
  const bytes = Buffer.from(body ?? '');
  if (contentType !== undefined) res.setHeader('Content-Type', contentType);
  // 204 and 304 have none (RFC 9110 §8.6); everything else says that it is empty.
  if (status !== 204 && status !== 304) res.setHeader('Content-Length', String(bytes.length));
  exposeHeaders(res);
  res.end(body === undefined ? undefined : bytes);
}
