// Mocks a Handle server with nock: returns scripted responses and counts requests.
import nock from 'nock';

export const UPSTREAM_URL = 'http://upstream.test:8000';

export interface Answer {
  status: number;
  body: unknown;
  headers?: Record<string, string>;
  /** Delays the response until this promise resolves. */
  after?: Promise<unknown>;
  /** Aborts the connection with this error code instead of responding. */
  error?: string;
}

export interface MockUpstream {
  /** Raw targets, in order of arrival. */
  targets: string[];
  readonly asked: number;
  /** Sets the response to later requests. */
  answers: (answer: Answer | ((target: string) => Answer)) => void;
}

export const VALUES = [
  {
    index: 1,
    type: 'URL',
    data: { format: 'string', value: 'https://example.org/1' },
    ttl: 86400,
    timestamp: '2026-11-21T09:00:00Z',
  },
  {
    index: 2,
    type: 'EMAIL',
    data: { format: 'string', value: 'a@example.org' },
    ttl: 86400,
    timestamp: '2026-11-21T09:00:00Z',
  },
  {
    index: 3,
    type: 'URL.MIRROR',
    data: { format: 'string', value: 'https://mirror.example.org/' },
    ttl: 86400,
    timestamp: '2026-11-21T09:00:00Z',
  },
];

export const HANDLE = '21.T11998/abc';
export const PATH = `/api/handles/${HANDLE}`;

export function recordOf(values: unknown[] = VALUES, handle = HANDLE): Answer {
  return { status: 200, body: { responseCode: 1, handle, values } };
}

export const notFound = (handle = HANDLE): Answer => ({ status: 404, body: { responseCode: 100, handle } });

export const urlValue = (value: string, ttl: number | string = 86400): unknown => ({
  ...VALUES[0],
  data: { format: 'string', value },
  ttl,
});

/** Returns the body; text and bytes are sent unchanged. */
const bodyOf = ({ body }: Answer): string | Buffer =>
  typeof body === 'string' || body instanceof Buffer ? body : JSON.stringify(body);

/** Mocks every GET under `/api` until the test ends (see nock.ts). */
export function mockUpstream(first: Answer | ((target: string) => Answer) = recordOf()): MockUpstream {
  let answer = first;
  const targets: string[] = [];
  nock(UPSTREAM_URL)
    .persist()
    .get(/^\/api/)
    .optionally()
    .reply(function (target, _body, callback) {
      targets.push(target);
      const given = typeof answer === 'function' ? answer(target) : answer;
      void Promise.resolve(given.after).then(() => {
        if (given.error !== undefined) {
          callback(Object.assign(new Error(given.error), { code: given.error }), [500, '']);
          return;
        }
        callback(null, [
          given.status,
          bodyOf(given),
          { 'Content-Type': 'application/json;charset=UTF-8', ...given.headers },
        ]);
      });
    });
  return {
    targets,
    get asked() {
      return targets.length;
    },
    answers: (next) => {
      answer = next;
    },
  };
}
