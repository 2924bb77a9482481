// One server: anonymous reads of whole records, behind a limiter, a circuit breaker and Retry-After pauses.
import type { Context } from '../context.js';
import { CATALOGUE, ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import type { Outcome } from '../handle/outcome.js';
import type { Caller } from './caller.js';
import type { ServerAccess, ServerSettings } from './contract.js';
import { exchange, parseAddress, requestHeaders } from './exchange.js';
import { readInSlices } from './reply.js';
import type { SourceRequest } from './source.js';
import type { ServerKeys } from './failure.js';
import { ServerHealth } from './health.js';
import { createHealthReport } from './health-report.js';

interface ServerRead {
  handle: HandleRef;
  authoritative: boolean;
  caller?: Caller | undefined;
  /** Timeout from queueing for a slot to the last byte, including the retry. */
  timeoutMs: number;
}

export interface UpstreamServer {
  /** @throws ServiceError UPSTREAM_* or OVERLOADED */
  read: (read: ServerRead) => Promise<Outcome>;
  health: ServerHealth;
}

/**
 * Creates one server. `keys`: undefined if it reports neither health nor breaker state; `label`: its name in
 * metrics.
 */
export function createServer(
  settings: ServerSettings,
  context: Context,
  { pseudonym, dispatcher, limiter, slicer }: ServerAccess,
  keys: ServerKeys | undefined,
  label = settings.url,
): UpstreamServer {
  const { url, caseSensitive, maxRecordBytes } = settings;
  const { now } = context.clock;
  const { origin } = parseAddress(url);
  const protocol = settings.source.protocol(settings);
  const health = new ServerHealth(
    settings,
    context.clock,
    keys && createHealthReport({ url, keys }, context),
  );
  const report = createReport(label, context);
  // No caller header except `Via` is sent, because many callers share the response.
  const headersOfAll = requestHeaders({ pseudonym });

  /** Sends a read. `deadline`: monotonic (ms). */
  async function send(
    asked: SourceRequest,
    { handle, caller }: ServerRead,
    deadline: number,
  ): Promise<Outcome> {
    const { text, key } = handle;
    // Again, because a pause may have started while the request waited for a slot.
    const attempt = health.begin(key);
    const startedAt = now();
    try {
      const headers = caller?.via ? requestHeaders({ pseudonym, via: caller.via }) : headersOfAll;
      const request = { origin, ...asked, headers };
      const timeoutMs = Math.max(1, deadline - performance.now());
      const response = await exchange(dispatcher, request, { timeoutMs, maxBodyBytes: maxRecordBytes });
      const { status, headers: received, body } = response;
      const pauseMs = health.pauseIfBusy(response);
      const reply = { status, headers: received, body, handle: text, caseSensitive, pauseMs };
      const reading = protocol.outcomeOf(reply);
      const read = readInSlices(slicer, reading, { chars: body.length, caller });
      const outcome = read instanceof Promise ? await read : read;
      const endedAt = now();
      report(outcome.kind, endedAt - startedAt);
      health.succeeded(endedAt);
      return outcome;
    } catch (error) {
      report(error instanceof ServiceError ? error.code : 'INTERNAL', now() - startedAt);
      if (error instanceof ServiceError) health.failed(attempt, error);
      throw error;
    }
  }

  return {
    health,
    async read(read) {
      const { handle, authoritative, caller, timeoutMs } = read;
      const asked = protocol.read(handle, authoritative);
      if ('kind' in asked) return asked;
      health.assertNotPaused();
      const deadline = performance.now() + timeoutMs;
      return limiter.run(() => send(asked, read, deadline), { key: handle.key, caller });
    },
  };
}

/** Creates the function that counts and traces an upstream read. */
function createReport(server: string, { metrics, hooks: { spans } }: Context) {
  return (result: string, durationMs: number): void => {
    metrics.countUpstreamRequest({ server, outcome: result, ms: durationMs });
    for (const { addCall } of spans)
      addCall({ name: 'GET upstream', durationMs, result, isFailure: result in CATALOGUE });
  };
}
