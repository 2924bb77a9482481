// Provides an upstream client with an observed circuit breaker, and several kinds of server failures.
import nock from 'nock';
import { expect, vi } from 'vitest';
import { handleRef } from '../../src/handle/handle.js';
import type { ServerSettings, UpstreamClient } from '../../src/upstream/contract.js';
import { testContext } from '../support/context.js';
import { createClient, mockUpstream, UPSTREAM } from './ask.js';

export const OPEN_FOR_MS = 5000;
export const FAILURES = 3;
export const question = { handle: handleRef('21.T1/a', false), authoritative: false };

interface Watched {
  client: UpstreamClient;
  /** Returns all state changes of the breaker. */
  states: () => unknown[];
  state: () => unknown;
}

export function createWatched(changes: Partial<ServerSettings> = {}): Watched {
  const context = testContext();
  const breaker = { failures: FAILURES, openForMs: OPEN_FOR_MS };
  // The failure cache is disabled, because other tests cover it.
  const client = createClient({ breaker, retryAfterMs: 0, ...changes }, context);
  const states = (): unknown[] =>
    context.lines
      .filter(({ msg }) => msg === 'circuit breaker state changed')
      .map(({ breaker: state }) => state);
  return { client, states, state: () => states().at(-1) ?? 'closed' };
}

export const codeOf = (answer: Promise<unknown>): Promise<string> =>
  answer.then(
    () => 'answered',
    (error: unknown) => (error as { code: string }).code,
  );

export const ask = (client: UpstreamClient, handle: string): Promise<string> =>
  codeOf(client.resolve({ handle: handleRef(handle, false), authoritative: false }));

export const pass = (ms: number): unknown => vi.advanceTimersByTime(ms);

/** Requests a handle `times` times while the upstream refuses connections. */
export async function refuse(client: UpstreamClient, times: number): Promise<void> {
  for (let time = 0; time < times; time++) {
    const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    nock(UPSTREAM).get(/.*/).times(2).replyWithError(refused);
    expect(await ask(client, question.handle.text)).toBe('UPSTREAM_UNREACHABLE');
  }
}

/** Requests each of `handles` while the upstream returns an error. */
export async function fail(client: UpstreamClient, handles: string[], status = 500): Promise<void> {
  for (const handle of handles) {
    mockUpstream().reply(status, { responseCode: 2 });
    expect(await ask(client, handle)).toBe('UPSTREAM_FAILED');
  }
}

export async function answerWell(client: UpstreamClient, handle = '21.T1/good'): Promise<void> {
  mockUpstream().reply(404, { responseCode: 100 });
  expect(await ask(client, handle)).toBe('answered');
}

export const handles = (count: number, name = 'broken'): string[] =>
  Array.from({ length: count }, (_, at) => `21.T1/${name}-${at}`);
