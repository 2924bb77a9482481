// Sends an answer: ETag and 304, gzip where it pays, headers for caches and scripts.
import type { Request, Response } from 'express';
import { render } from './body.js';
import { contextOf } from './context.js';
import { exposeHeaders } from './cors.js';
import { type Representation, matchesEtag, represent } from './representation.js';

export interface Reply {
  status: number;
  json: string;
  headers: Record<string, string>;
}

/**
 * Sends JSON in the form the caller asked for, and gives back what was made of it. `gzipMinBytes`:
 * shorter answers are not compressed.
 */
export async function sendReply(
  req: Request,
  res: Response,
  reply: Reply & { gzipMinBytes: number },
): Promise<Representation> {
  const content = { ...render(reply.json, contextOf(res).format), hasEtag: reply.status === 200 };
  const acceptEncoding = req.headers['accept-encoding']?.toString();
  const made = await represent(content, { acceptEncoding, gzipMinBytes: reply.gzipMinBytes });
  setAll(res, [...Object.entries(reply.headers).flat(), ...made.common]);
  if (made.etag !== undefined && matchesEtag(req.headers['if-none-match'], made.etag)) {
    exposeHeaders(res);
    res.status(304).end();
    return made;
  }
  setAll(res, made.ofBody);
  exposeHeaders(res);
  res.status(reply.status).end(made.body);
  return made;
}

function setAll(res: Response, headers: readonly string[]): void {
  for (let at = 0; at < headers.length; at += 2) res.setHeader(headers[at] ?? '', headers[at + 1] ?? '');
}
