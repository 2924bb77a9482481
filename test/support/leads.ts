// Starts a proxy and a Handle server with a test's records, and reads redirects.
import type { Asked, Question } from './ask.js';
import { type Proxy, startProxy } from './proxy.js';
import { type MockUpstream, mockUpstream, notFound, recordOf } from './upstream.js';

export const PREFIX = '21.T11998';

/** Returns a value in the record interface's format. */
export const value = (
  index: number,
  type: string,
  data: string,
  ttl: number | string = 86400,
): Record<string, unknown> => ({
  index,
  type,
  data: { format: 'string', value: data },
  ttl,
  timestamp: '2026-11-21T09:00:00Z',
});

export interface Leads extends Proxy {
  upstream: MockUpstream;
  /** Returns status and Location of `/21.T11998/<path>`. */
  to: (path: string, question?: Question) => Promise<[status: number, location: string | undefined]>;
  /** Returns the complete response. */
  get: (path: string, headers?: Record<string, string>, question?: Question) => Promise<Asked>;
  /** Replaces upstream records without notifying the proxy. */
  put: (more: Record<string, unknown[]>) => void;
}

/** Starts both servers. The keys of `records` are suffixes under 21.T11998, or full handles elsewhere. */
export async function startLeads(
  records: Record<string, unknown[]>,
  env: Record<string, string> = {},
): Promise<Leads> {
  const kept = new Map(Object.entries(records));
  const upstream = mockUpstream((target) => {
    const handle = handleIn(target);
    const values = kept.get(handle.startsWith(PREFIX) ? handle.slice(PREFIX.length + 1) : handle);
    return values === undefined ? notFound(handle) : recordOf(values, handle);
  });
  const proxy = await startProxy(env);
  return {
    ...proxy,
    upstream: withoutPrefixes(upstream),
    async to(path, question) {
      const { status, headers } = await proxy.ask(`/${PREFIX}/${path}`, question);
      return [status, headers.location];
    },
    get: (path, headers = {}, question = {}) => proxy.ask(`/${PREFIX}/${path}`, { ...question, headers }),
    put: (more) => {
      for (const [suffix, values] of Object.entries(more)) kept.set(suffix, values);
    },
  };
}

const handleIn = (target: string): string =>
  decodeURIComponent(target.slice('/api/handles/'.length).split('?')[0]!);

/** Whether the request reads a prefix record, which test/redirect/prefixes.test.ts covers. */
export const isPrefixRead = (target: string): boolean => target.startsWith('/api/handles/0.NA/');

const withoutPrefixes = ({ targets, answers }: MockUpstream): MockUpstream => ({
  get targets() {
    return targets.filter((target) => !isPrefixRead(target));
  },
  get asked() {
    return this.targets.length;
  },
  answers: (next) => {
    answers((target) => {
      if (isPrefixRead(target)) return notFound(handleIn(target));
      return typeof next === 'function' ? next(target) : next;
    });
  },
});
