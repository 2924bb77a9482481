// A Handle server made of nock mocks: gives scripted responses and counts its requests.
import nock from 'nock';

export const UPSTREAM_URL = 'http://upstream.test:8000';

export interface Answer {
  status: number;
  body: unknown;
  headers?: Record<string, string>;
  /** Answers only after this promise has resolved. */
  after?: Promise<unknown>;
  /** Aborts the connection with this error code instead of answering. */
  error?: string;
}

export interface MockUpstream {
  /** Raw targets, in the order of arrival. */
  targets: string[];
  readonly asked: number;
  /** Sets the response from now on. */
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

/** Texts and bytes as they are. */
const bodyOf = ({ body }: Answer): string | Buffer =>
  typeof body === 'string' || body instanceof Buffer ? body : JSON.stringify(body);

/** Answers every GET under `/api`. Mocks end with their test (see nock.ts). */
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
