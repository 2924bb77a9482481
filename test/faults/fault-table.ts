// Faults of the Handle server, and the expected responses to readers and writers. src/upstream/README.md
// lists the same rows.
import type { ServerResponse } from 'node:http';
import type { Certificate } from '../support/certificate.js';
import type { FaultyServer } from './faulty-server.js';

export interface FaultRow {
  fault: string;
  breakIt: (server: FaultyServer, certificates: Certificates) => unknown;
  /** The reason in Cache-Status when an expired record is served stale. */
  stale: 'error' | 'timeout';
  /** Response status for an uncached record. */
  noEntry: number;
  /** Number of upstream requests per read. */
  asked: number;
  /** `connections` counts connection attempts instead of requests, for faults that prevent connections. */
  counts?: 'connections';
  write: number;
  writeAfterSeconds?: number;
  /** Whether the response to a write starts but never ends. */
  cutsWrite?: true;
  /** Whether the cached record stays fresh after the write, because the server certainly did not execute it. */
  staysFresh: boolean;
  /** How the proxy trusts a TLS server. */
  tls?: 'authority' | 'pin';
  /** Retry-After sent by the server, in ms. */
  restMs?: number;
}

export interface Certificates {
  good: Certificate;
  expired: Certificate;
  otherName: Certificate;
  unknown: Certificate;
}

const JSON_TYPE = { 'Content-Type': 'application/json;charset=UTF-8' };
const MEGABYTE = Buffer.alloc(1024 ** 2, ' ');

const reply =
  (status: number, headers: Record<string, string>, body: string) =>
  (server: FaultyServer): void => {
    server.misbehave((response) => response.writeHead(status, headers).end(body));
  };

const startOfBody = (response: ServerResponse): void => {
  response.writeHead(200, { ...JSON_TYPE, 'Content-Length': '500' }).write('{"responseCode":1,');
};

/** Sends up to 100 MiB at the client's reading speed. */
function sendMegabytes(response: ServerResponse, left = 100): void {
  if (left === 0 || response.destroyed) response.end();
  else
    response.write(MEGABYTE, () => {
      sendMegabytes(response, left - 1);
    });
}

const NEVER_SENT = { noEntry: 502, write: 502, staysFresh: true, stale: 'error' } as const;
const NO_ANSWER = { noEntry: 502, asked: 1, write: 200, staysFresh: false, stale: 'error' } as const;
const TOO_LATE = { noEntry: 504, asked: 1, write: 504, staysFresh: false, stale: 'timeout' } as const;

const NO_CONNECTION: FaultRow[] = [
  {
    fault: 'connection refused',
    breakIt: (server) => server.refuse(),
    ...NEVER_SENT,
    asked: 2,
    counts: 'connections',
  },
  {
    fault: 'host unreachable (packets lost)',
    breakIt: (server) => server.vanish(),
    ...TOO_LATE,
    asked: 0,
    // The connection of a write has a shorter timeout than its response.
    write: 502,
    writeAfterSeconds: 10,
    staysFresh: true,
  },
  {
    fault: 'host name unknown (DNS)',
    breakIt: (server) => {
      server.loseName();
    },
    ...NEVER_SENT,
    asked: 2,
    counts: 'connections',
  },
  {
    fault: 'TLS certificate expired',
    breakIt: (server, { expired }) => {
      server.show(expired);
    },
    ...NEVER_SENT,
    asked: 0,
    tls: 'authority',
  },
  {
    fault: 'TLS certificate for a different name',
    breakIt: (server, { otherName }) => {
      server.show(otherName);
    },
    ...NEVER_SENT,
    asked: 0,
    tls: 'authority',
  },
  {
    fault: 'TLS certificate from an unknown authority',
    breakIt: (server, { unknown }) => {
      server.show(unknown);
    },
    ...NEVER_SENT,
    asked: 0,
    tls: 'authority',
  },
  {
    fault: 'TLS certificate other than the pinned one',
    breakIt: (server, { unknown }) => {
      server.show(unknown);
    },
    ...NEVER_SENT,
    asked: 0,
    tls: 'pin',
  },
];

const TOO_SLOW: FaultRow[] = [
  {
    fault: 'headers never arrive',
    breakIt: (server) => {
      server.misbehave(() => undefined);
    },
    ...TOO_LATE,
  },
  {
    fault: 'body stalls half-way',
    breakIt: (server) => {
      server.misbehave(startOfBody);
    },
    ...TOO_LATE,
    write: 200,
    cutsWrite: true,
  },
];

const BAD_ANSWERS: FaultRow[] = [
  {
    fault: 'connection reset',
    breakIt: (server) => {
      server.misbehave((response) => response.socket?.resetAndDestroy());
    },
    ...NO_ANSWER,
    asked: 2,
    write: 502,
  },
  {
    fault: 'body truncated half-way',
    breakIt: (server) => {
      server.misbehave((response) => {
        startOfBody(response);
        setImmediate(() => response.destroy());
      });
    },
    ...NO_ANSWER,
    asked: 2,
    cutsWrite: true,
  },
  {
    fault: 'HTML page with 200 (a login, a gateway)',
    breakIt: reply(200, { 'Content-Type': 'text/html' }, '<h1>Please log in</h1>'),
    ...NO_ANSWER,
  },
  { fault: 'invalid JSON', breakIt: reply(200, JSON_TYPE, '{"responseCode":1,"ha'), ...NO_ANSWER },
  {
    fault: 'the record of a different handle',
    breakIt: reply(200, JSON_TYPE, '{"responseCode":1,"handle":"21.T1/other","values":[]}'),
    ...NO_ANSWER,
  },
  {
    fault: 'a body of 100 MB',
    breakIt: (server) => {
      server.misbehave((response) => {
        response.writeHead(200, JSON_TYPE);
        sendMegabytes(response);
      });
    },
    ...NO_ANSWER,
  },
  {
    fault: 'endless redirect',
    breakIt: reply(302, { Location: '/api/handles/21.T1/round' }, ''),
    ...NO_ANSWER,
    write: 302,
    staysFresh: true,
  },
  {
    fault: '500 with code 2',
    breakIt: reply(500, JSON_TYPE, '{"responseCode":2,"message":"Internal Error"}'),
    ...NO_ANSWER,
    noEntry: 500,
    write: 500,
  },
  {
    fault: '503 with `Retry-After`',
    breakIt: reply(503, { ...JSON_TYPE, 'Retry-After': '20' }, '{"responseCode":3,"message":"Too busy"}'),
    ...NO_ANSWER,
    noEntry: 503,
    write: 503,
    restMs: 20_000,
  },
  {
    fault: '429 with `Retry-After`',
    breakIt: reply(429, { 'Content-Type': 'text/plain', 'Retry-After': '20' }, 'slow down'),
    ...NO_ANSWER,
    noEntry: 503,
    write: 429,
    staysFresh: true,
    restMs: 20_000,
  },
];

export const FAULTS: readonly FaultRow[] = [...NO_CONNECTION, ...TOO_SLOW, ...BAD_ANSWERS];
