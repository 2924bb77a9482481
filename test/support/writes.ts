// The upstream's side of writes, made of nock mocks: notes what it is sent and answers as a test wants.
import nock from 'nock';
import { HANDLE, UPSTREAM_URL } from './upstream.js';

export interface Sent {
  method: string;
  /** Path and query as they came. */
  target: string;
  headers: Record<string, string>;
  /** nock gives bytes that are no UTF-8 in hexadecimal: see `asNockTells`. */
  body: string;
}

export interface WriteAnswer {
  status: number;
  body?: string | Buffer;
  /** Names and values by turns; a name may come twice. */
  rawHeaders?: string[];
  /** Breaks the connection with this error code once the request is there, instead of answering. */
  error?: string;
  /** Answers only after this promise is resolved. */
  after?: Promise<unknown>;
}

export const JSON_HEADERS = ['Content-Type', 'application/json;charset=utf-8'];

/** An answer of the record interface. */
export function jsonAnswer(status: number, members: Record<string, unknown>): WriteAnswer {
  return { status, body: JSON.stringify({ ...members, handle: HANDLE }), rawHeaders: JSON_HEADERS };
}

/** Answers every PUT, DELETE and POST, and what else is named; gives the list of what was sent. */
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
