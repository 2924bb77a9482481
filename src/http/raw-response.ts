// Sends a response as raw text: head and body in one string with a single write.
import { STATUS_CODES, type ServerResponse, validateHeaderName, validateHeaderValue } from 'node:http';

/** Header lines, each with its CRLF. */
export type HeaderLines = string & { readonly __lines: unique symbol };

export interface RawResponse {
  status: number;
  lines: HeaderLines;
  /** One character per byte; empty for a response without a body. */
  body: string;
}

/** Formats names and values as lines. @throws TypeError for an invalid name or value, as `setHeader` does */
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

/** Node keeps the head in `_header` until the body follows. */
interface WithHead {
  _header: unknown;
}

/** Longer bodies are not joined: Node keeps the head until the response is sent, so slow readers would hold a body twice. */
const MAX_JOINED_BYTES = 64 * 1024;

type SendRaw = (res: ServerResponse, response: RawResponse, now: number) => void;

/**
 * Avoids `writeHead`, which validates every header again and makes the body a second write. Node formats the first head
 * of each second, and the lines it adds (Date, Connection, Keep-Alive) are copied into the other heads of that second.
 * If a release of Node has no `_header`, `writeHead` formats all heads (test/live/internals).
 */
export function createSendRaw(): SendRaw {
  const learnt = { second: -1, text: '' };

  return function sendRaw(res, response, now) {
    const { status, lines, body } = response;
    const second = Math.floor(now / 1000);
    const isUsual = res.shouldKeepAlive && res.getHeaderNames().length === 0;
    if (isUsual && second === learnt.second) {
      res.statusCode = status;
      const head = statusLine(status) + lines + learnt.text;
      const isLong = body.length > MAX_JOINED_BYTES;
      (res as unknown as WithHead)._header = isLong ? head : head + body;
      if (isLong) res.end(body, 'latin1');
      else res.end();
      return;
    }
    res.writeHead(status, headersOf(lines));
    const added = isUsual ? addedByNode(res, response) : undefined;
    if (added !== undefined) Object.assign(learnt, { second, text: added });
    res.end(body, 'latin1');
  };
}

/** Uses `unknown` for unknown codes, as Node does. */
const statusLine = (status: number): string => `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`;

function headersOf(lines: HeaderLines): string[] {
  return lines
    .split('\r\n')
    .slice(0, -1)
    .flatMap((line) => {
      const colon = line.indexOf(': ');
      return [line.slice(0, colon), line.slice(colon + 2)];
    });
}

/**
 * The text that Node added after our lines, with the empty line; undefined if it is unknown, or if Node closes a
 * connection that should stay open, as with a 304 in HTTP/1.0.
 */
function addedByNode(res: ServerResponse, { status, lines }: RawResponse): string | undefined {
  const { _header: head } = res as unknown as WithHead;
  const ours = statusLine(status) + lines;
  if (typeof head !== 'string' || !head.startsWith(ours)) return undefined;
  const added = head.slice(ours.length);
  return added.includes('Connection: close') ? undefined : added;
}
