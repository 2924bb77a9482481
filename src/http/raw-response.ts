// Sends an answer that is prepared as text: head and body as one string, in one write.
import { STATUS_CODES, type ServerResponse, validateHeaderName, validateHeaderValue } from 'node:http';

/** Header lines, each with its CRLF. */
export type Lines = string & { readonly __lines: unique symbol };

export interface Wired {
  status: number;
  lines: Lines;
  /** One character a byte; empty where the answer has no body to send. */
  body: string;
}

/** Names and values as lines. @throws TypeError for what cannot stand in a header, as `setHeader` does */
export function linesOf(headers: readonly string[]): Lines {
  let lines = '';
  for (let at = 0; at < headers.length; at += 2) {
    const [name = '', value = ''] = [headers[at], headers[at + 1]];
    validateHeaderName(name);
    validateHeaderValue(name, value);
    lines += `${name}: ${value}\r\n`;
  }
  return lines as Lines;
}

/** Where Node keeps the head it has written, until the body follows. */
interface Insides {
  _header: unknown;
}

/**
 * `writeHead` looks at every header anew, and a body after it is a second write: a fifth of a whole hit.
 * Here Node writes the first head of each second, and what it adds there (Date, Connection, Keep-Alive) is
 * added to all others of that second. Where Node does not show the head it wrote, it writes them all.
 */
export function createWire(): (res: ServerResponse, answer: Wired, now: number) => void {
  const learnt = { second: -1, text: '' };

  return function send(res, answer, now) {
    const { status, lines, body } = answer;
    const second = Math.floor(now / 1000);
    const isUsual = res.shouldKeepAlive && res.getHeaderNames().length === 0;
    if (isUsual && second === learnt.second) {
      res.statusCode = status;
      (res as unknown as Insides)._header = statusLine(status) + lines + learnt.text + body;
      res.end();
      return;
    }
    res.writeHead(status, headersOf(lines));
    const added = isUsual ? addedByNode(res, answer) : undefined;
    if (added !== undefined) Object.assign(learnt, { second, text: added });
    res.end(body, 'latin1');
  };
}

const statusLine = (status: number): string => `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;

function headersOf(lines: Lines): string[] {
  return lines
    .split('\r\n')
    .slice(0, -1)
    .flatMap((line) => {
      const colon = line.indexOf(': ');
      return [line.slice(0, colon), line.slice(colon + 2)];
    });
}

/**
 * What Node wrote after our lines, the empty line included; undefined when it is not known, or ends the connection
 * although that was to be kept: so it does with a 304 in HTTP/1.0.
 */
function addedByNode(res: ServerResponse, { status, lines }: Wired): string | undefined {
  const { _header: head } = res as unknown as Insides;
  const ours = statusLine(status) + lines;
  if (typeof head !== 'string' || !head.startsWith(ours)) return undefined;
  const added = head.slice(ours.length);
  return added.includes('Connection: close') ? undefined : added;
}
