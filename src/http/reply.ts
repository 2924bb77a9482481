// Sends an answer: ETag and 304, gzip where it pays, headers for caches and scripts.
import type { Request, Response } from 'express';
import { render } from './body.js';
import { contextOf } from './context.js';
import { exposeHeaders } from './cors.js';
import type { Format } from './query.js';
import { type Representation, matchesEtag, represent } from './representation.js';
import type { AskedHeaders } from './fast-headers.js';

export interface Reply {
  status: number;
  json: string;
  headers: Record<string, string>;
}

/** What goes to one caller. */
export interface Outgoing {
  status: number;
  /** Names and values. */
  headers: string[];
  /** Undefined when the caller has it already. */
  body: Buffer | undefined;
  made: Representation;
}

export interface Wanted {
  format: Format;
  asked: Readonly<Omit<AskedHeaders, 'origin'>>;
  /** Shorter answers are not compressed. */
  gzipMinBytes: number;
}

/** Makes of JSON what the caller asked for. */
export async function outgoing(reply: Reply, { format, asked, gzipMinBytes }: Wanted): Promise<Outgoing> {
  const { acceptEncoding, ifNoneMatch } = asked;
  const content = { ...render(reply.json, format), hasEtag: reply.status === 200 };
  const made = await represent(content, { acceptEncoding, gzipMinBytes });
  const headers = Object.entries(reply.headers).flat().concat(made.common);
  if (made.etag !== undefined && matchesEtag(ifNoneMatch, made.etag)) {
    return { status: 304, headers, body: undefined, made };
  }
  return { status: reply.status, headers: headers.concat(made.ofBody), body: made.body, made };
}

/** Sends JSON in the form the caller asked for, and gives back what was made of it. */
export async function sendReply(
  req: Request,
  res: Response,
  { gzipMinBytes, ...reply }: Reply & { gzipMinBytes: number },
): Promise<Representation> {
  const asked = {
    acceptEncoding: req.headers['accept-encoding']?.toString(),
    ifNoneMatch: req.headers['if-none-match'],
  };
  const { format } = contextOf(res);
  const { status, headers, body, made } = await outgoing(reply, { format, asked, gzipMinBytes });
  for (let at = 0; at < headers.length; at += 2) res.setHeader(headers[at] ?? '', headers[at + 1] ?? '');
  exposeHeaders(res);
  res.status(status).end(body);
  return made;
}
