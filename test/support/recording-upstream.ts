// An upstream on raw sockets that records every byte, and parses requests strictly by RFC 9112.
import { once } from 'node:events';
import { type AddressInfo, type Socket, createServer } from 'node:net';

export interface RecordedRequest {
  /** Number of the request's connection. */
  connection: number;
  method: string;
  target: string;
  /** All values by lower-case name. */
  headers: Record<string, string[]>;
  body: string;
}

export interface RecordingUpstream {
  url: string;
  requests: RecordedRequest[];
  /** Returns bytes that violate HTTP/1.1 or belong to no complete request. */
  violations: () => string[];
  /** Open connections, oldest first. */
  sockets: Set<Socket>;
  close: () => Promise<void>;
}

/** Returns the raw bytes of a response. */
export type AnswerWith = (request: RecordedRequest) => string;

export const jsonReply = (text: string, status = '200 OK'): string =>
  `HTTP/1.1 ${status}\r\nContent-Type: application/json;charset=UTF-8\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;

/** Starts an upstream that by default responds with success; the caller closes it. */
export async function startRecordingUpstream(
  answerWith: AnswerWith = () => jsonReply('{"responseCode":1}'),
): Promise<RecordingUpstream> {
  const requests: RecordedRequest[] = [];
  const violations: string[] = [];
  const unread = new Map<number, string>();
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    const connection = connections++;
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
    socket.on('data', (bytes) => {
      unread.set(connection, (unread.get(connection) ?? '') + bytes.toString('latin1'));
      try {
        for (let next = take(); next !== undefined; next = take()) socket.write(answerWith(next), 'latin1');
      } catch (error) {
        violations.push(`connection ${connection}: ${String(error)}`);
        socket.destroy();
      }
    });
    function take(): RecordedRequest | undefined {
      const read = readRequest(unread.get(connection) ?? '');
      if (read === undefined) return undefined;
      unread.set(connection, read.rest);
      const request = { connection, ...read.request };
      requests.push(request);
      return request;
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    violations: () => [
      ...violations,
      ...[...unread]
        .filter(([, rest]) => rest !== '')
        .map(([at, rest]) => `connection ${at}: left over ${rest}`),
    ],
    sockets,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

interface Read {
  request: Omit<RecordedRequest, 'connection'>;
  rest: string;
}

/** @throws SyntaxError unless the bytes start an HTTP/1.1 request of known length */
function readRequest(text: string): Read | undefined {
  const end = text.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const [requestLine = '', ...lines] = text.slice(0, end).split('\r\n');
  const [, method = '', target] = /^([A-Z]+) (\/[\x21-\x7e]*) HTTP\/1\.1$/.exec(requestLine) ?? [];
  if (target === undefined) throw new SyntaxError(`no request line: ${requestLine.slice(0, 200)}`);
  const headers = readHeaders(lines);
  const length = lengthOf(headers, method);
  const rest = text.slice(end + 4);
  if (rest.length < length) return undefined;
  return { request: { method, target, headers, body: rest.slice(0, length) }, rest: rest.slice(length) };
}

function readHeaders(lines: readonly string[]): Record<string, string[]> {
  const headers: Record<string, string[]> = {};
  for (const line of lines) {
    const [, name, value = ''] = /^([!#$%&'*+\-.^_`|~\w]+): ?([\t\x20-\x7e\x80-\xff]*)$/.exec(line) ?? [];
    if (name === undefined) throw new SyntaxError(`no header: ${line.slice(0, 200)}`);
    (headers[name.toLowerCase()] ??= []).push(value);
  }
  return headers;
}

const NEVER_SENT = ['transfer-encoding', 'trailer', 'te', 'expect', 'upgrade', 'keep-alive'];

/** Returns the body length, and rejects any framing but Content-Length, the only choice for a known body. */
function lengthOf(headers: Record<string, string[]>, method: string): number {
  for (const name of NEVER_SENT) {
    if (headers[name] !== undefined) throw new SyntaxError(`a header ${name}`);
  }
  if (headers['host']?.length !== 1) throw new SyntaxError('not one Host');
  const length = headers['content-length']?.join();
  const form = method === 'PUT' || method === 'POST' ? /^(0|[1-9]\d{0,8})$/ : /^[1-9]\d{0,8}$|^undefined$/;
  if (!form.test(String(length))) throw new SyntaxError(`${method} with Content-Length: ${length}`);
  return Number(length ?? 0);
}
