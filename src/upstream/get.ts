// One GET over node:http, as the commonest question is asked: a fetch costs four times as much.
import http from 'node:http';
import https from 'node:https';
import type { Readable } from 'node:stream';
import { urlToHttpOptions } from 'node:url';
import { ServiceError } from '../errors.js';
import { tooLong } from './body.js';
import { decoded } from './content-encoding.js';
import type { Limit } from './time-limit.js';

/** Where a server is. */
export interface Origin {
  protocol: 'http:' | 'https:';
  hostname: string;
  port: string;
  /** As the header says it. */
  host: string;
  /** In front of every path. */
  path: string;
}

export function readOrigin(address: string): Origin {
  const url = new URL(address);
  // An IPv6 address is written without its brackets there.
  const { hostname = '' } = urlToHttpOptions(url);
  const protocol = url.protocol === 'https:' ? 'https:' : 'http:';
  return {
    protocol,
    hostname: hostname ?? '',
    port: url.port,
    host: url.host,
    path: url.pathname.replace(/\/+$/, ''),
  };
}

export interface GetRequest {
  origin: Origin;
  /** Raw: it is sent as it stands. */
  path: string;
  headers: readonly string[];
  agent: http.Agent;
  maxBodyBytes: number;
  limit: Limit;
}

export interface Arrived {
  status: number;
  headers: Pick<Headers, 'get'>;
  body: string;
}

/** Redirects are not followed. Rejects with what went wrong on the way, or with the reason of the limit. */
export function get({ limit, maxBodyBytes, ...asked }: GetRequest): Promise<Arrived> {
  return new Promise((resolve, reject) => {
    if (limit.reason !== undefined) {
      reject(limit.reason);
      return;
    }
    const request = send(asked);
    let stream: Readable | undefined;
    const fail = (error: Error): void => {
      reject(error);
      // An answer that is not read to its end leaves a connection that nobody else can use.
      request.destroy();
      // When all of it has come, nothing but this ends the unpacking.
      stream?.destroy();
    };
    limit.onOver = fail;
    request.on('error', fail);
    // Without a listener Node closes the connection, and says nothing.
    request.on('upgrade', ({ statusCode: status }) => {
      fail(new ServiceError('UPSTREAM_BAD_ANSWER', { detail: `HTTP ${status}, which was not asked for` }));
    });
    request.on('response', (response) => {
      const { statusCode: status = 0 } = response;
      stream = decoded(response, fail);
      readText(stream, { status, maxBodyBytes }).then((body) => {
        resolve({ status, headers: headersOf(response), body });
      }, fail);
    });
  });
}

/** Looked up at each call, so that tests can mock it. Headers in a list are written as they are. */
function send({ origin, ...asked }: Omit<GetRequest, 'limit' | 'maxBodyBytes'>): http.ClientRequest {
  const { protocol, hostname, port } = origin;
  const { request } = protocol === 'https:' ? https : http;
  return request({ protocol, hostname, port, ...asked }).end();
}

interface Bound {
  status: number;
  maxBodyBytes: number;
}

/** @throws ServiceError UPSTREAM_BAD_ANSWER as soon as the body, decompressed, is over the limit */
function readText(stream: Readable, { status, maxBodyBytes }: Bound): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  return new Promise((resolve, reject) => {
    stream.on('error', reject);
    stream.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxBodyBytes) chunks.push(chunk);
      else reject(tooLong(status, maxBodyBytes));
    });
    stream.on('end', () => {
      const [only] = chunks;
      const whole = chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, length);
      resolve(whole.toString('utf8'));
    });
  });
}

const headersOf = ({ headers }: http.IncomingMessage): Pick<Headers, 'get'> => ({
  get: (name) => headers[name]?.toString() ?? null,
});
