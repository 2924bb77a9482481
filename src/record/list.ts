// Lists the handles of a prefix: from a plugin that knows the list, otherwise from the server of the prefix.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Host } from '../host.js';
import type { Config } from '../config/schema.js';
import { ServiceError } from '../errors.js';
import { type ListMembers, bodyOfMembers, listMembers } from '../handle/outcome.js';
import { writeTexts } from '../handle/json-texts.js';
import { writeJson } from '../handle/json.js';
import { type KnownList, firstOf } from '../hooks.js';
import { CACHE_NAME } from '../http/cache-headers.js';
import { type Handler, contextOf } from '../http/context.js';
import { NO_STORE, renderBody, representInSteps, sendMade, sendReply } from '../http/reply.js';
import { pageIn } from '../http/target.js';
import { notCached } from '../resolver/loader.js';
import { type Steps, flatMapGroups } from '../time-slicer.js';
import type { ListAnswer, RecordAnswer } from '../upstream/reply.js';
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
      const members = listMembers(prefix, list.handles, list.page);
      return sendList(req, res, members, { headers: listHeaders(list, clock.now()), gzipMinBytes });
    }
    if (context.onlyIfCached) throw notCached();
    const [server] = upstreams.findServers(refOf(`${prefix}/`));
    if (server?.source.forwards !== false) return forward(req, res, context, server);
    return sendListAnswer(req, res, await server.list(prefix, pageIn(parameters)));
  };
}

const listHeaders = ({ listedAt, detail }: KnownList, now: number): Record<string, string> => ({
  Age: String(Math.max(0, Math.floor((now - listedAt) / 1000))),
  'Cache-Control': 'no-store',
  'Cache-Status': `${CACHE_NAME}; hit; detail=${detail}`,
});

async function sendListAnswer(
  req: IncomingMessage,
  res: ServerResponse,
  { status, members, handles }: ListAnswer,
): Promise<void> {
  if (handles === undefined) return sendAnswer(req, res, { status, body: bodyOfMembers(members, undefined) });
  contextOf(res).result = 'bypass';
  await sendList(req, res, { ...members, handles }, { headers: NO_STORE });
}

/** Sends a list, which is written in steps. */
async function sendList(
  req: IncomingMessage,
  res: ServerResponse,
  members: ListMembers,
  reply: { headers: Record<string, string>; gzipMinBytes?: number },
): Promise<void> {
  const { format, runSteps } = contextOf(res);
  function* render() {
    return yield* renderBody({ status: 200, json: yield* writeList(members) }, format);
  }
  // Requests that wait for a slice hold nothing: the handles are those of a mirror, or of one parsed response.
  const made = await runSteps(representInSteps(req, render(), reply), Infinity);
  await sendMade(req, res, reply, made);
}

function* writeList({ handles, ...members }: ListMembers): Steps<string> {
  const before = writeJson({ ...members, handles: [] }).slice(0, -']}'.length);
  const parts = yield* flatMapGroups(handles, (group) => [writeTexts(group)]);
  return `${before}${parts.join(',')}]}`;
}

/** Sends the answer of a server without private values. */
export async function sendAnswer(
  req: IncomingMessage,
  res: ServerResponse,
  { status, body: json }: Pick<RecordAnswer, 'status' | 'body'>,
): Promise<void> {
  contextOf(res).result = 'bypass';
  await sendReply(req, res, { status, json, headers: NO_STORE });
}
