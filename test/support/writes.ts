// Mocks the upstream side of writes with nock: records requests and returns a test's responses.
import nock from 'nock';
import { HANDLE, UPSTREAM_URL } from './upstream.js';

export interface Sent {
  method: string;
  /** Path and query as received. */
  target: string;
  headers: Record<string, string>;
  /** nock returns non-UTF-8 bytes in hexadecimal: see `asNockTells`. */
  body: string;
}

export interface WriteAnswer {
  status: number;
  body?: string | Buffer;
  /** Alternating names and values; names may repeat. */
  rawHeaders?: string[];
  /** Aborts the connection with this error code after the request has arrived, instead of responding. */
  error?: string;
  /** Delays the response until this promise resolves. */
  after?: Promise<unknown>;
}

export const JSON_HEADERS = ['Content-Type', 'application/json;charset=utf-8'];

/** Returns a record interface response. */
export function jsonAnswer(status: number, members: Record<string, unknown>): WriteAnswer {
  return { status, body: JSON.stringify({ ...members, handle: HANDLE }), rawHeaders: JSON_HEADERS };
}

/** Mocks every PUT, DELETE and POST, or `methods`, and returns the received requests. */
export function mockWrites(
  answer: WriteAnswer = jsonAnswer(200, { responseCode: 1 }),
  { methods = ['PUT', 'DELETE', 'POST'], origin = UPSTREAM_URL, path = /^\/api/ } = {},
): Sent[] {
  const sent: Sent[] = [];
  for (const method of methods) {
    const scope = nock(origin).persist();
    const mocked = scope.intercept(path, method).optionally();
    const { status, body = '', rawHeaders = [], after } = answer;
    if (answer.error === undefined)
      mocked.reply(async () => {
        await after;
        return [status, body, rawHeaders];
      });
    else mocked.replyWithError(Object.assign(new Error(answer.error), { code: answer.error }));
    scope.on('request', (req: SeenByNock, _mock: unknown, body: string) => {
      sent.push({ method: req.method, target: req.path, headers: req.headers, body });
    });
  }
  return sent;
}

interface SeenByNock {
  method: string;
  path: string;
  headers: Record<string, string>;
}

export function asNockTells(bytes: Buffer): string {
  const text = bytes.toString('utf8');
  return Buffer.from(text).equals(bytes) ? text : bytes.toString('hex');
}
