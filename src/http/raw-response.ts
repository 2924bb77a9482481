// Sends head and body of a response as one string in a single write.
import { STATUS_CODES, ServerResponse, validateHeaderName, validateHeaderValue } from 'node:http';

/** Header lines, each ending in CRLF. */
export type HeaderLines = string & { readonly __lines: unique symbol };

export interface RawResponse {
  status: number;
  lines: HeaderLines;
  /** One character per byte; empty for a response without a body. */
  body: string;
}

/** Formats alternating names and values as lines. @throws TypeError as `setHeader` does */
export function linesOf(headers: readonly string[]): HeaderLines {
  let lines = '';
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] ?? '';
    const value = headers[at + 1] ?? '';
    validateHeaderName(name);
    validateHeaderValue(name, value);
    lines += `${name}: ${value}\r\n`;
  }
  return lines as HeaderLines;
}

/** Header of every response, because browsers otherwise guess media types, and run JSON as a script (Fetch standard). */
export const NOSNIFF = { 'X-Content-Type-Options': 'nosniff' };

const NOSNIFF_LINE = linesOf(Object.entries(NOSNIFF).flat());

/** Adds `NOSNIFF` to a response that `createSendRaw` does not send. */
export function forbidSniffing(res: ServerResponse): void {
  res.setHeaders(new Map(Object.entries(NOSNIFF)));
}

/** Node stores the head in `_header`, and writes it with the body. */
interface WithHead {
  _header: unknown;
}

/** Maximum body joined with the head, which Node keeps until it is sent: slow readers would hold a longer one twice. */
const MAX_JOINED_BYTES = 64 * 1024;

/** Sends head and body; `at` is the time, if it is already known. */
export type SendRaw = (res: ServerResponse, response: RawResponse, at?: number) => void;

/** Sends a response with `writeHead`. Adds `NOSNIFF`. */
export function sendByNode(res: ServerResponse, { status, lines, body }: RawResponse): void {
  res.writeHead(status, headersIn((lines + NOSNIFF_LINE) as HeaderLines));
  res.end(body, 'latin1');
}

/**
 * Creates a sender that avoids `writeHead`, which validates every header again and makes the body a
 * second write. Node formats the first head of each second; other heads in that second copy the lines
 * that Node added (Date, Connection, Keep-Alive). On a Node release without `_header`, `writeHead`
 * formats all heads (test/live/internals). Middleware of a program that embeds the proxy replaces `writeHead` or `end` to add
 * to a response, so both must be Node's.
 *
 * Adds `NOSNIFF` to every response.
 */
export function createSendRaw(now: () => number): SendRaw {
  const learnt: { second: number; text: string; server?: unknown } = { second: -1, text: '' };

  return function sendRaw(res, response, at = now()) {
    if (!isUsual(res)) {
      sendByNode(res, response);
      return;
    }
    const { status, lines, body } = response;
    const second = Math.floor(at / 1000);
    const server = serverOf(res);
    if (second === learnt.second && server === learnt.server) {
      res.statusCode = status;
      const head = statusLine(status) + lines + learnt.text;
      const isLong = body.length > MAX_JOINED_BYTES;
      (res as unknown as WithHead)._header = isLong ? head : head + body;
      res.end(isLong ? body : '', 'latin1');
      return;
    }
    sendByNode(res, response);
    const added = addedByNode(res, response);
    if (added !== undefined) Object.assign(learnt, { second, text: added, server });
  };
}

const { prototype: ofNode } = ServerResponse;

const isUsual = (res: ServerResponse): boolean =>
  res.shouldKeepAlive &&
  res.getHeaderNames().length === 0 &&
  res.writeHead === ofNode.writeHead &&
  res.end === ofNode.end;

/** Returns the server, whose timeout is in `Keep-Alive`. Node's types lack it. */
const serverOf = ({ req }: ServerResponse): unknown => (req.socket as { server?: unknown }).server;

/** Formats the status line, with `unknown` for unknown codes, as Node does. */
const statusLine = (status: number): string => `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`;

function headersIn(lines: HeaderLines): string[] {
  const headers: string[] = [];
  for (const line of lines.split('\r\n').slice(0, -1)) {
    const colon = line.indexOf(': ');
    headers.push(line.slice(0, colon), line.slice(colon + 2));
  }
  return headers;
}

/** Matches what follows our lines on a connection that stays open. */
const FOLLOWING =
  /^X-Content-Type-Options: nosniff\r\nDate: [^\r\n]+\r\nConnection: keep-alive\r\nKeep-Alive: timeout=\d+\r\n\r\n$/;

/**
 * Returns the text that Node appended to our lines, including the empty line. Undefined if the head is not
 * visible, if Node closes a connection that should stay open, as for a 304 in HTTP/1.0, or if another part of the program
 * has added a header, which belongs to this response only.
 */
function addedByNode(res: ServerResponse, { status, lines }: RawResponse): string | undefined {
  const { _header: head } = res as unknown as WithHead;
  const ours = statusLine(status) + lines;
  if (typeof head !== 'string' || !head.startsWith(ours)) return undefined;
  const added = head.slice(ours.length);
  return FOLLOWING.test(added) ? added : undefined;
}
