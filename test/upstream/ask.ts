// An upstream client before a mocked Handle server that notes every request it gets.
import nock from 'nock';
import type { Outcome } from '../../src/handle/outcome.js';
import {
  createUpstreamClient,
  type UpstreamClient,
  type UpstreamClientOptions,
} from '../../src/upstream/client.js';
import { TimeSlicer } from '../../src/time-slicer.js';
import { createNodeHttpDispatcher } from '../support/node-http-dispatcher.js';

export const UPSTREAM = 'http://handle.test:8000';

interface Sent {
  path: string;
  headers: Record<string, string>;
}

/** The requests of the mocked server, in order. */
export interface MockedUpstream {
  sent: Sent[];
  reply(status: number, body?: unknown, headers?: Record<string, string>): void;
}

/** Mocks the server; each `reply` answers one GET, whatever its path. */
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

export function createClient(changes: Partial<UpstreamClientOptions> = {}): UpstreamClient {
  return createUpstreamClient({
    mirrors: [],
    failoverAfterMs: 3000,
    retryAfterMs: 5000,
    maxPauseMs: 60_000,
    mirrorLagMs: 60_000,
    limiter: { concurrency: 64, queue: 1000, waitMs: 60_000 },
    pseudonym: 'handle-resolver-proxy',
    url: UPSTREAM,
    timeoutMs: 60_000,
    maxRecordBytes: 100_000,
    caseSensitive: false,
    dispatcher: createNodeHttpDispatcher({ connections: 10 }),
    breaker: { failures: 100, openForMs: 5000 },
    slicer: new TimeSlicer({ monotonic: () => performance.now(), nextTurn: setImmediate }),
    now: Date.now,
    ...changes,
  });
}

/** Sends one ordinary read through a new client. */
export function resolve(handle: string, changes: Partial<UpstreamClientOptions> = {}): Promise<Outcome> {
  return createClient(changes).resolve({ handle, authoritative: false });
}
