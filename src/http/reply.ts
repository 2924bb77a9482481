// Replies: representation for the caller, 304 by ETag, header order.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Bytes } from '../handle/bytes.js';
import { frameOf, render } from './body.js';
import { contextOf } from './context.js';
import { exposing } from './cors.js';
import type { Format } from './query.js';
import { linesOf, sendByNode } from './raw-response.js';
import type { RunSteps } from './request-work.js';
import { type Steps, runToEnd } from '../time-slicer.js';
import { isNotModified } from './preconditions.js';
import { type Representation, represent } from './representation.js';

interface ReplyHead {
  status: number;
  headers: Record<string, string>;
}

export interface Reply extends ReplyHead {
  json: string;
}

export interface TextReply extends ReplyHead {
  contentType: string;
  text: string;
  /** Request headers that the text depends on, in addition to the common ones. */
  varies?: readonly string[];
  /** Minimum body length for compression (bytes); without it, the text is not compressed. */
  gzipMinBytes?: number;
}

interface ReplyForm {
  format: Format;
  acceptEncoding: string | undefined;
  /** Minimum body length for compression (bytes). */
  gzipMinBytes: number;
}

/** Renders a reply's representation; returns a promise only for a compressed body. */
function* representReply(reply: Reply, form: ReplyForm): Steps<Representation | Promise<Representation>> {
  const { status, json } = reply;
  if (!form.format.pretty) return representAsWritten(reply, form);
  const { contentType, text } = yield* render(json, form.format);
  return represent({ text, contentType, hasEtag: status === 200 }, form);
}

/** Renders JSON as written, without indentation, in a single step. */
function representAsWritten(
  { status, json }: Reply,
  form: ReplyForm,
): Representation | Promise<Representation> {
  const { contentType, before, after } = frameOf(form.format);
  return represent({ text: before + json + after, contentType, hasEtag: status === 200 }, form);
}

/** Status, headers and body for one caller. */
interface OutgoingReply {
  status: number;
  /** Names and values alternately. */
  headers: string[];
  /** Undefined for a 304. */
  body: Bytes | undefined;
}

/** Turns a reply into a 304 if the caller already has this representation (RFC 9110 §15.4.5). */
function outgoing(reply: ReplyHead, made: Representation, ifNoneMatch: string | undefined): OutgoingReply {
  const headers: string[] = [];
  for (const name of Object.keys(reply.headers)) headers.push(name, reply.headers[name] ?? '');
  headers.push(...made.common);
  if (made.etag !== undefined && isNotModified(ifNoneMatch, made.etag))
    return { status: 304, headers, body: undefined };
  headers.push(...made.ofBody);
  return { status: reply.status, headers, body: made.body };
}

/** Sends a representation, or 304, in a single write. */
export function sendMade(
  req: IncomingMessage,
  res: ServerResponse,
  head: ReplyHead,
  made: Representation,
): void {
  const { status, headers, body } = outgoing(head, made, req.headers['if-none-match']);
  const sent = req.method === 'HEAD' || body === undefined ? '' : body;
  const { sendRaw = sendByNode } = contextOf(res);
  sendRaw(res, { status, lines: linesOf([...headers, ...exposing(res, headers)]), body: sent });
}

let ending: Promise<void> | undefined;

/**
 * Resolves at the end of the event-loop turn, so that all responses of a turn are written together, because a
 * write that wakes a sleeping client costs twice as much.
 */
export const endOfTurn = (): Promise<void> =>
  (ending ??= new Promise((resolve) => {
    setImmediate(() => {
      ending = undefined;
      resolve();
    });
  }));

/** Sends text, or 304 if the client has the current ETag. */
export async function sendText(
  req: IncomingMessage,
  res: ServerResponse,
  { status, headers, gzipMinBytes = Infinity, ...content }: TextReply,
): Promise<void> {
  const acceptEncoding = req.headers['accept-encoding']?.toString();
  const made = await represent({ ...content, hasEtag: status === 200 }, { acceptEncoding, gzipMinBytes });
  await endOfTurn();
  sendMade(req, res, { status, headers }, made);
}

/** Sends JSON in the requested format, and returns the representation. */
export async function sendReply(
  req: IncomingMessage,
  res: ServerResponse,
  { gzipMinBytes, runSteps = runToEnd, ...reply }: Reply & { gzipMinBytes: number; runSteps?: RunSteps },
): Promise<Representation> {
  const { format } = contextOf(res);
  const acceptEncoding = req.headers['accept-encoding']?.toString();
  const making = representReply(reply, { format, acceptEncoding, gzipMinBytes });
  const made = await runSteps(making, reply.json.length);
  await endOfTurn();
  sendMade(req, res, reply, made);
  return made;
}
