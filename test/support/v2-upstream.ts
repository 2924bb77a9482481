// Mocks a Handle server with nock: responds from a script and records the received requests.
import nock from 'nock';
import { expect, onTestFinished, vi } from 'vitest';
import { UPSTREAM_URL } from './upstream.js';

export interface Scripted {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
  /** Aborts the connection with this error code instead of responding. */
  error?: string;
  /** Never responds; the request times out immediately. */
  hangs?: boolean;
  /** Responds after this time (ms), which passes immediately. */
  afterMs?: number;
}

export interface SentUpstream {
  method: string;
  /** Path and query. */
  target: string;
  authorization: string | undefined;
  contentType: string | undefined;
  body: unknown;
}

/** Exceeds the defaults of `upstream.timeout` and `upstream.writeTimeout`. */
const TIME_LIMIT_MS = 60_000;

/**
 * Makes timeouts expire on demand, so that no test waits for them and a stalled machine times out no other
 * request.
 */
function fakeTimeLimits(script: Scripted[]): void {
  if (!script.some(({ hangs, afterMs }) => hangs ?? afterMs)) return;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
}

/** Lets the time pass twice, because a timeout waits in two halves. */
function passTime(ms: number, then: () => void): void {
  vi.advanceTimersByTime(ms);
  setImmediate(() => {
    vi.advanceTimersByTime(ms);
    then();
  });
}

/** Responds in script order to any request. Further requests get 599 and are recorded too. */
export function scriptUpstream(...script: Scripted[]): { sent: SentUpstream[] } {
  fakeTimeLimits(script);
  const sent: SentUpstream[] = [];
  const rest = [...script];
  const respond = function (
    this: nock.ReplyFnContext,
    target: string,
    body: nock.Body,
    callback: (error: NodeJS.ErrnoException | null, result: nock.ReplyFnResult) => void,
  ): void {
    const { method, headers } = this.req as unknown as { method: string; headers: Record<string, unknown> };
    sent.push({
      method,
      target,
      authorization: textOf(headers['authorization']),
      contentType: textOf(headers['content-type']),
      body: body === '' ? undefined : body,
    });
    expect(headers).toMatchObject({ accept: 'application/json', 'user-agent': 'handle-resolver-proxy' });
    const next = rest.shift() ?? { status: 599 };
    if (next.hangs) {
      passTime(TIME_LIMIT_MS, () => undefined);
      return;
    }
    const text = typeof next.body === 'string' ? next.body : JSON.stringify(next.body ?? '');
    const result: nock.ReplyFnResult = [next.status, next.body === undefined ? '' : text, next.headers ?? {}];
    if (next.afterMs !== undefined) passTime(next.afterMs / 2, () => callback(null, result));
    else if (next.error === undefined) callback(null, result);
    else callback(Object.assign(new Error(next.error), { code: next.error }), [500, '']);
  };
  const scope = nock(UPSTREAM_URL).persist();
  for (const method of ['get', 'put', 'delete'] as const) scope[method](/.*/).optionally().reply(respond);
  return { sent };
}

const textOf = (value: unknown): string | undefined =>
  Array.isArray(value) ? value.join(', ') : (value as string | undefined);

export const NAME = '21.T11998/abc';

/** Recorded Handle server responses. */
export const reply = {
  record: (values: unknown[], handle = NAME): Scripted => ({
    status: 200,
    body: { responseCode: 1, handle, values },
  }),
  empty: { status: 200, body: { responseCode: 200, values: [], handle: NAME } },
  missing: { status: 404, body: { responseCode: 100, handle: NAME } },
  created: { status: 201, body: { responseCode: 1, handle: NAME } },
  done: { status: 200, body: { responseCode: 1, handle: NAME } },
  exists: { status: 409, body: { responseCode: 101, handle: NAME } },
  forbidden: { status: 403, body: { responseCode: 400, handle: NAME } },
  wrongLogin: { status: 401, body: '' },
} satisfies Record<string, Scripted | ((...given: never[]) => Scripted)>;

/** Returns the request that a test expects upstream. */
export const sends = (
  method: string,
  target: string,
  authorization: string | undefined,
  body?: unknown,
): SentUpstream => ({
  method,
  target: `/api/handles${target}`,
  authorization,
  contentType: body === undefined ? undefined : 'application/json',
  body,
});
