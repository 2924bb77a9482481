// Logs and counts each request once, when its response closes.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import type { Context } from '../context.js';
import { type Hooks, type RequestSpan, firstOf } from '../hooks.js';
import { type RequestContext, contextOf, requestIdOf } from './context.js';

type AddressOf = (req: IncomingMessage) => { address: string; network: string };

/** Registers a request to report when its response closes. Requests must have a context. */
export type RequestLog = (req: IncomingMessage, res: ServerResponse) => void;

/**
 * Counts requests, and logs those selected by `log.requests`. Never logs headers or the query,
 * which may contain credentials.
 */
export function createRequestLog(
  { metrics, log, isLogged, hooks }: Context,
  findClient: AddressOf,
): RequestLog {
  const countRead = createCountRead(hooks);
  return function requestLog(req, res) {
    const { method = '' } = req;
    const startedAt = performance.now();
    const span = firstOf(hooks.spans, ({ current }) => current());
    res.once('close', () => {
      const { family, target, handle: { text: handle } = {}, result, failure } = contextOf(res);
      const ms = Math.round((performance.now() - startedAt) * 1000) / 1000;
      const path = shownPath(target.path);
      const code = failure?.code;
      span?.describe({
        'url.path': path,
        'handle_proxy.interface': family,
        'handle_proxy.result': result,
        ...(handle !== undefined && { 'handle_proxy.handle': handle }),
      });
      const { address, network } = findClient(req);
      metrics.recent.countClient({
        // The address of a disconnected client may be unknown.
        network: isIP(address) === 0 ? undefined : network,
        agent: req.headers['user-agent'] ?? '',
        result,
        code,
      });
      const request = { interface: family, method, handle, path, status: res.statusCode, result, ms };
      metrics.countRequest({ ...request, code });
      countRead(contextOf(res));
      if (isLogged(result) && log.isLevelEnabled('info')) log.info(lineOf(res, request, span), 'request');
    });
  };
}

function lineOf(res: ServerResponse, request: object, span: RequestSpan | undefined): object {
  const { failure } = contextOf(res);
  const requestId = requestIdOf(res);
  const failed = failure && { code: failure.code, ...failure.diagnosis };
  return { ...request, requestId, ...failed, ...(span && { traceId: span.traceId }) };
}

const createCountRead =
  ({ answered }: Pick<Hooks, 'answered'>) =>
  ({ handle, exists, family }: RequestContext): void => {
    if (handle === undefined || exists === undefined) return;
    for (const each of answered) each({ handle, exists, interface: family });
  };

/** Maximum logged path length, because rejected request lines may be much longer. */
const MAX_PATH_LENGTH = 2000;

/** Masks session ids, which are credentials; `this` is a keyword, not an id. */
function shownPath(path: string): string {
  const shown = path.replace(/^(\/api\/sessions\/)(?!this$).+$/is, '$1***');
  return shown.length > MAX_PATH_LENGTH ? `${shown.slice(0, MAX_PATH_LENGTH)}…` : shown;
}
