// One server: reads of whole records behind a limiter and its health.
import type { Context } from '../context.js';
import { CATALOGUE, ServiceError } from '../errors.js';
import type { Outcome } from '../handle/outcome.js';
import type { HandleRead, ServerAccess, ServerSettings } from './contract.js';
import { exchange, parseAddress, requestHeaders } from './exchange.js';
import type { ServerKeys } from './failure.js';
import { ServerHealth } from './health.js';
import { readInSlices } from './reply.js';

export type UpstreamServer = ReturnType<typeof createServer>;

/** Creates a server. `keys`: undefined if it reports neither health nor breaker state; `label`: its name in metrics. */
export function createServer(
  settings: ServerSettings,
  context: Context,
  { pseudonym, dispatcher, limiter, slicer }: ServerAccess,
  keys: ServerKeys | undefined,
  label = settings.url,
) {
  const { caseSensitive, maxRecordBytes: maxBodyBytes } = settings;
  const { origin } = parseAddress(settings.url);
  const protocol = settings.source.protocol(settings);
  const health = new ServerHealth(settings, context, keys);
  const beforeWait = (): void => health.assertClosed();
  const { metrics, hooks } = context;
  // No caller header except `Via` is sent, because many callers share the response.
  const headersOfAll = requestHeaders({ pseudonym });

  return {
    health,
    usage: () => limiter.usage(),
    /**
     * Reads a handle until the deadline (monotonic, ms), including the queue for a slot and the retry.
     *
     * @throws ServiceError UPSTREAM_* or OVERLOADED
     */
    async read({ handle, authoritative, caller }: HandleRead, deadline: number): Promise<Outcome> {
      const asked = protocol.read(handle, authoritative);
      if ('kind' in asked) return asked;
      health.assertNotPaused();
      const headers = caller?.via ? requestHeaders({ pseudonym, via: caller.via }) : headersOfAll;
      const request = { origin, ...asked, headers };
      const send = async (startedAt: number, hasWaited: boolean): Promise<Outcome> => {
        // A pause may have started meanwhile.
        if (hasWaited) health.assertNotPaused();
        const attempt = health.begin(handle.key);
        let result = 'INTERNAL';
        try {
          const timeoutMs = Math.max(1, deadline - startedAt);
          const response = await exchange(dispatcher, request, { timeoutMs, maxBodyBytes });
          const pauseMs = health.pauseIfBusy(response);
          const { status, headers: received, body } = response;
          // Named: a spread of the response costs 3 µs, more than the rest of a read in this process (measured).
          const reply = { status, headers: received, body, handle: handle.text, caseSensitive, pauseMs };
          const read = readInSlices(slicer, protocol.outcomeOf(reply), { chars: body.length, caller });
          const outcome = read instanceof Promise ? await read : read;
          health.succeeded();
          result = outcome.kind;
          return outcome;
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error;
          result = error.code;
          health.failed(attempt, error);
          throw error;
        } finally {
          const durationMs = performance.now() - startedAt;
          metrics.countUpstreamRequest({ server: label, outcome: result, ms: durationMs });
          for (const { addCall } of hooks.spans)
            addCall({ name: 'GET upstream', durationMs, result, isFailure: result in CATALOGUE });
        }
      };
      return limiter.run(send, { key: handle.key, caller, beforeWait });
    },
  };
}
