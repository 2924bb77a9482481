// Provides an upstream client with a mocked Handle server that records its requests.
import { partial } from '../support/partial.js';
import nock from 'nock';
import type { Outcome } from '../../src/handle/outcome.js';
import { handleRef } from '../../src/handle/handle.js';
import type { Context } from '../../src/context.js';
import { createUpstreamClient } from '../../src/upstream/upstreams.js';
import type { ServerSettings, UpstreamClient } from '../../src/upstream/contract.js';
import { HANDLE_SERVER } from '../../src/upstream/handle-server.js';
import { keysAt } from '../../src/upstream/failure.js';
import { TimeSlicer } from '../../src/time-slicer.js';
import { testContext } from '../support/context.js';
import { createNodeHttpDispatcher } from '../support/node-http-dispatcher.js';

export const UPSTREAM = 'http://handle.test:8000';

interface Sent {
  path: string;
  headers: Record<string, string>;
}

/** Mocked server; `sent` lists its requests in order. */
export interface MockedUpstream {
  sent: Sent[];
  reply(status: number, body?: unknown, headers?: Record<string, string>): void;
}

/** Mocks the server; each `reply` responds to one GET of any path. */
export function mockUpstream(): MockedUpstream {
  const sent: Sent[] = [];
  return {
    sent,
    reply(status, body = '', headers = { 'content-type': 'application/json;charset=utf-8' }) {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      nock(UPSTREAM)
        .get(/.*/)
        .reply(function (path) {
          sent.push({ path, headers: { ...this.req.headers } });
          return [status, text, headers];
        });
    },
  };
}

/** Default client settings, which tests override individually. */
export const SETTINGS = {
  kind: 'handle-server',
  key: 'upstream',
  caFile: undefined,
  fingerprint: undefined,
  source: HANDLE_SERVER,
  prefixes: [],
  existenceCheck: false,
  readOnly: false,
  secondaries: [],
  timeoutMs: 60_000,
  failoverAfterMs: 3000,
  retryAfterMs: 5000,
  maxRetryAfterMs: 60_000,
  secondaryMaxTtlMs: 60_000,
  writeTimeoutMs: 60_000,
  connections: 10,
  concurrency: 64,
  minConcurrency: 64,
  queue: 1000,
  queueTimeoutMs: 60_000,
  maxRecordBytes: 100_000,
  maxBodyBytes: 100_000,
  caseSensitive: false,
  breaker: { failures: 100, openForMs: 5000 },
} satisfies Omit<ServerSettings, 'url'>;

export const createSlicer = (): TimeSlicer =>
  new TimeSlicer({ monotonic: () => performance.now(), nextTurn: setImmediate });

export function createClient(
  changes: Partial<ServerSettings> = {},
  context: Context = testContext(),
): UpstreamClient {
  return createUpstreamClient(
    { ...SETTINGS, url: UPSTREAM, ...changes },
    context,
    partial({
      pseudonym: 'handle-resolver-proxy',
      dispatcher: createNodeHttpDispatcher({ connections: 10 }),
      slicer: createSlicer(),
    }),
    (url) => keysAt({ key: 'upstream', url: UPSTREAM }, url),
  );
}

/** Sends one ordinary read through a new client. */
export function resolve(
  handle: string,
  changes: Partial<ServerSettings> = {},
  context?: Context,
): Promise<Outcome> {
  return createClient(changes, context).resolve({ handle: handleRef(handle, false), authoritative: false });
}
