// Lists the handles of a prefix: from a plugin that knows the list, otherwise from the server of the prefix.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Host } from '../host.js';
import type { Config } from '../config/schema.js';
import { ServiceError } from '../errors.js';
import { writeJson } from '../handle/json.js';
import { listMembers } from '../handle/outcome.js';
import { type KnownList, firstOf } from '../hooks.js';
import { CACHE_NAME } from '../http/cache-headers.js';
import { type Handler, contextOf } from '../http/context.js';
import { sendReply } from '../http/reply.js';
import { pageIn } from '../http/target.js';
import { notCached } from '../resolver/loader.js';
import type { RecordAnswer } from '../upstream/reply.js';
import type { Forward } from './forward.js';

/** Creates the handler of `GET /api/handles?prefix=…`. */
export function createListHandles(config: Config, host: Host, forward: Forward): Handler {
  const { hooks, upstreams, refOf, clock } = host;
  const { gzipMinBytes } = config.http;

  return async function listHandles(req, res, context) {
    const { parameters } = context;
    const hasLogin = req.headers.authorization !== undefined;
    const prefix = parameters.get('prefix');
    if (prefix === null) {
      // Neither a handle nor a list: a Handle server checks the login, then rejects the request.
      if (hasLogin) return forward(req, res, context);
      throw new ServiceError('EMPTY_HANDLE');
    }
    const request = { method: req.method ?? 'GET', hasLogin, parameters };
    const list = firstOf(hooks.list, (find) => find(prefix, request));
    if (list !== undefined) {
      context.result = 'hit';
      const json = writeJson(listMembers(prefix, list.handles, list.page));
      const reply = { status: 200, json, headers: listHeaders(list, clock.now()), gzipMinBytes };
      return sendReply(req, res, reply, context.runSteps);
    }
    if (context.onlyIfCached) throw notCached();
    const [server] = upstreams.findServers(refOf(`${prefix}/`));
    if (server?.source.forwards !== false) return forward(req, res, context, server);
    return sendAnswer(req, res, await server.list(prefix, pageIn(parameters)));
  };
}

const listHeaders = ({ listedAt, detail }: KnownList, now: number): Record<string, string> => ({
  Age: String(Math.max(0, Math.floor((now - listedAt) / 1000))),
  'Cache-Control': 'no-store',
  'Cache-Status': `${CACHE_NAME}; hit; detail=${detail}`,
});

/** Sends the answer of a server without private values. */
export async function sendAnswer(
  req: IncomingMessage,
  res: ServerResponse,
  { status, body: json }: RecordAnswer,
): Promise<void> {
  const context = contextOf(res);
  context.result = 'bypass';
  const reply = { status, json, headers: { 'Cache-Control': 'no-store' } };
  await sendReply(req, res, reply, context.runSteps);
}
