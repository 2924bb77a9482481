// A dispatcher over node:http for tests with nock, which does not intercept undici's connections.
import http from 'node:http';
import https from 'node:https';
import { urlToHttpOptions } from 'node:url';
import type { Dispatcher } from 'undici';
import {
  type ClosableDispatcher,
  type ConnectionOptions,
  createConnections,
} from '../../src/upstream/connections.js';

/**
 * Creates a dispatcher with the options of `createPools`, and as much of its contract as tests with nock
 * need.
 */
export function createNodeHttpDispatcher(options: ConnectionOptions): ClosableDispatcher {
  const agents = new Map<string, http.Agent>();
  const createAgent = (url: string): http.Agent => createConnections({ ...options, url }).writeAgent;
  function agentOf(origin: string): http.Agent {
    const agent = agents.get(origin) ?? createAgent(origin);
    agents.set(origin, agent);
    return agent;
  }
  return {
    dispatch({ origin, path, method, headers, body, reset }, handler) {
      const { hostname, port, protocol, host } = new URL(String(origin));
      const isTls = protocol === 'https:';
      // Reads `request` on each call, because nock replaces it.
      const { request } = isTls ? https : http;
      const sent = request({
        ...urlToHttpOptions(new URL(String(origin))),
        hostname: hostname.replace(/^\[|\]$/g, ''),
        port,
        path,
        method,
        headers: [
          'Host',
          host,
          ...(headers as string[]),
          ...lengthOf(body),
          ...(reset ? ['Connection', 'close'] : []),
        ],
        agent: reset ? createAgent(String(origin)) : agentOf(String(origin)),
      });
      receive(sent, handler);
      sent.end(body);
      return true;
    },
    destroy() {
      for (const agent of agents.values()) agent.destroy();
      return Promise.resolve();
    },
  };
}

const lengthOf = (body: unknown): string[] =>
  typeof body === 'string' ? ['Content-Length', String(Buffer.byteLength(body))] : [];

/** Translates node:http events into calls of undici's handler. */
function receive(sent: http.ClientRequest, handler: Dispatcher.DispatchHandler): void {
  let isOver = false;
  const end = (callback: () => void): void => {
    if (!isOver) callback();
    isOver = true;
  };
  const controller = {
    aborted: false,
    paused: false,
    reason: null as Error | null,
    pause: () => undefined,
    resume: () => undefined,
    abort(reason: Error): void {
      controller.reason = reason;
      controller.aborted = true;
      sent.destroy();
      fail(reason);
    },
  };
  const fail = (error: Error): void => {
    end(() => handler.onResponseError?.(controller, error));
  };
  sent.on('error', fail);
  sent.on('upgrade', () => {
    sent.destroy();
    fail(Object.assign(new Error('bad upgrade'), { code: 'UND_ERR_SOCKET' }));
  });
  sent.on('response', (response) => {
    const { statusCode = 0, headers, statusMessage } = response;
    handler.onResponseStart?.(controller, statusCode, headers, statusMessage);
    response.on('data', (chunk: Buffer) => {
      if (!isOver) handler.onResponseData?.(controller, chunk);
    });
    response.on('error', fail);
    response.on('end', () => {
      end(() => handler.onResponseEnd?.(controller, {}));
    });
  });
  handler.onRequestStart?.(controller, {});
}
