// Sends raw bytes over a socket, and parses responses strictly as HTTP/1.1.
import { once } from 'node:events';
import { type Socket, connect } from 'node:net';
import { onTestFinished } from 'vitest';

export interface RawAnswer {
  version: string;
  status: number;
  /** Header values by lower-case name; repeated headers are joined with commas. */
  headers: Record<string, string>;
  body: string;
}

export interface Exchange {
  answers: RawAnswer[];
  /** Whether the server closed the connection. */
  closed: boolean;
}

/**
 * Opens a connection and closes it when the test ends. `localAddress` selects a different loopback address.
 */
export async function openSocket(url: string, localAddress?: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, localAddress });
  socket.on('error', () => undefined);
  onTestFinished(() => {
    socket.destroy();
  });
  await once(socket, 'connect');
  return socket;
}

/**
 * Sends bytes, and reads `answers` complete responses, by default until the server closes the connection.
 *
 * @throws SyntaxError for a response that is not HTTP/1.1
 */
export async function exchange(
  url: string,
  bytes: string | Buffer,
  { answers: wanted = Infinity, isHead = false }: { answers?: number; isHead?: boolean } = {},
): Promise<Exchange> {
  const socket = await openSocket(url);
  let received = Buffer.alloc(0);
  return new Promise((resolve, reject) => {
    const settle = (closed: boolean): void => {
      try {
        const { answers, rest } = readAnswers(received, isHead);
        if (closed && rest !== '') throw new SyntaxError(`left over: ${rest}`);
        if (closed || answers.length >= wanted) resolve({ answers, closed });
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    };
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (wanted !== Infinity) settle(false);
    });
    socket.once('close', () => {
      settle(true);
    });
    socket.write(bytes);
  });
}

/** Sends one request over an open connection, and keeps the connection open. */
export function exchangeOn(socket: Socket, bytes: string): Promise<RawAnswer> {
  let received = Buffer.alloc(0);
  return new Promise((resolve, reject) => {
    const closed = (): void => {
      reject(new Error(`closed before a whole answer came: ${received.toString('latin1')}`));
    };
    const read = (chunk: Buffer): void => {
      received = Buffer.concat([received, chunk]);
      const [answer] = readAnswers(received, false).answers;
      if (answer === undefined) return;
      socket.off('data', read).off('close', closed);
      resolve(answer);
    };
    if (socket.closed) closed();
    socket.on('data', read).once('close', closed);
    socket.write(bytes);
  });
}

/** Returns a function that sends a request over an open connection, also before earlier requests are answered. */
export function pipelineOn(socket: Socket): (bytes: string) => Promise<RawAnswer> {
  const waiting: ((answer: RawAnswer) => void)[] = [];
  let received = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    const { answers, rest } = readAnswers(Buffer.concat([received, chunk]), false);
    received = Buffer.from(rest, 'latin1');
    for (const answer of answers) waiting.shift()?.(answer);
  });
  return (bytes) =>
    new Promise((resolve) => {
      waiting.push(resolve);
      socket.write(bytes);
    });
}

function readAnswers(bytes: Buffer, isHead: boolean): { answers: RawAnswer[]; rest: string } {
  const answers: RawAnswer[] = [];
  let rest = bytes.toString('latin1');
  for (;;) {
    const end = rest.indexOf('\r\n\r\n');
    if (end === -1) return { answers, rest };
    const head = readHead(rest.slice(0, end));
    if (head.status === 204 && 'content-length' in head.headers) throw new SyntaxError('a 204 with a length');
    const { body, length } = readBody(
      rest.slice(end + 4),
      head.headers,
      isHead || head.status < 200 || [204, 304].includes(head.status),
    );
    if (body === undefined) return { answers, rest };
    answers.push({ ...head, body: Buffer.from(body, 'latin1').toString('utf8') });
    rest = rest.slice(end + 4 + length);
  }
}

function readHead(text: string): Omit<RawAnswer, 'body'> {
  const [statusLine, ...lines] = text.split('\r\n');
  const [, version, status] = /^HTTP\/(1\.[01]) ([1-5]\d\d) [\x20-\x7e]*$/.exec(statusLine!) ?? [];
  if (status === undefined) throw new SyntaxError(`no status line: ${statusLine!}`);
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const [, name, value] = /^([!#$%&'*+\-.^_`|~\w]+): ?([^\r\n\0]*)$/.exec(line) ?? [];
    if (name === undefined) throw new SyntaxError(`no header: ${line}`);
    const before = headers[name.toLowerCase()];
    headers[name.toLowerCase()] = before === undefined ? value! : `${before}, ${value!}`;
  }
  return { version: version!, status: Number(status), headers };
}

/** Returns the body and its encoded length; undefined while it is incomplete. */
function readBody(
  stream: string,
  headers: Record<string, string>,
  isEmpty: boolean,
): { body: string | undefined; length: number } {
  const contentLength = headers['content-length'];
  if (contentLength !== undefined && headers['transfer-encoding'] !== undefined) {
    throw new SyntaxError('both Content-Length and Transfer-Encoding');
  }
  if (isEmpty) return { body: '', length: 0 };
  if (contentLength !== undefined) {
    const length = Number(contentLength);
    return { body: stream.length < length ? undefined : stream.slice(0, length), length };
  }
  if (headers['transfer-encoding'] === 'chunked') return readChunks(stream);
  // An empty body that ends with the connection (RFC 9112 §6.3).
  if (headers['connection'] === 'close' && stream === '') return { body: '', length: 0 };
  throw new SyntaxError('nothing tells how long the body is');
}

function readChunks(stream: string): { body: string | undefined; length: number } {
  let body = '';
  let at = 0;
  for (;;) {
    const [line, size] = /^([0-9a-f]+)\r\n/i.exec(stream.slice(at)) ?? [];
    if (line === undefined || size === undefined) return { body: undefined, length: 0 };
    const start = at + line.length;
    const end = start + parseInt(size, 16);
    if (stream.length < end + 2) return { body: undefined, length: 0 };
    if (size === '0') return { body, length: end + 2 };
    body += stream.slice(start, end);
    at = end + 2;
  }
}
