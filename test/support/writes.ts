// The upstream side of writes, made of nock mocks: records its requests and answers as a test sets.
import nock from 'nock';
import { HANDLE, UPSTREAM_URL } from './upstream.js';

export interface Sent {
  method: string;
  /** Path and query as received. */
  target: string;
  headers: Record<string, string>;
  /** nock returns bytes that are not UTF-8 in hexadecimal: see `asNockTells`. */
  body: string;
}

export interface WriteAnswer {
  status: number;
  body?: string | Buffer;
  /** Names and values alternate; a name may occur twice. */
  rawHeaders?: string[];
  /** Aborts the connection with this error code when the request has arrived, instead of answering. */
  error?: string;
  /** Answers only after this promise has resolved. */
  after?: Promise<unknown>;
}

export const JSON_HEADERS = ['Content-Type', 'application/json;charset=utf-8'];

/** A response of the record interface. */
export function jsonAnswer(status: number, members: Record<string, unknown>): WriteAnswer {
  return { status, body: JSON.stringify({ ...members, handle: HANDLE }), rawHeaders: JSON_HEADERS };
}

/** Answers every PUT, DELETE and POST, and other named methods. @returns the requests received */
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
