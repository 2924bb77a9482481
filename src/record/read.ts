// Reads a record: from the cache for anyone, from the Handle server with a login or for private values.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Host } from '../host.js';
import type { Config } from '../config/schema.js';
import { readHandle } from '../handle/handle.js';
import type { Admit, Handler, RequestContext } from '../http/context.js';
import { identityOf } from '../http/identity.js';
import { createAnswerRecord } from '../http/record-reply.js';
import { assertEscaped, readRecordQuery } from '../http/target.js';
import { notCached } from '../resolver/loader.js';
import type { OriginRecord } from '../write/origin-record.js';
import type { Forward } from './forward.js';
import { sendAnswer } from './list.js';

/** Creates the handler of GET requests for a handle. `admit` judges reads that miss in memory. */
export function createReadRecord(config: Config, host: Host, admit: Admit, forwardRead: Handler): Handler {
  const { resolver } = host;
  const answerRecord = createAnswerRecord(config, host);
  const forwardAdmitted: Handler = async (req, res, context) => {
    await admit(req, res, context);
    await forwardRead(req, res, context);
  };

  return async function readRecord(req, res, context) {
    if (req.headers.authorization !== undefined) return forwardAdmitted(req, res, context);
    const { target, parameters, client, onlyIfCached } = context;
    const handle = host.refOf(readHandle(target.rawHandle ?? ''));
    context.handle = handle;
    if (target.query !== '') assertEscaped(target.query);
    const query = target.query === '' ? WHOLE_RECORD : readRecordQuery(parameters);
    if (!query.publicOnly) return forwardAdmitted(req, res, context);
    const resolution = await resolver.read(handle, {
      authoritative: query.authoritative,
      onlyIfCached,
      admit: admit.bind(undefined, req, res, context),
      client: client.network,
    });
    return answerRecord(req, res, context, { handle, query, resolution });
  };
}

/** The query of a request without parameters, which most are. */
const WHOLE_RECORD = readRecordQuery(new URLSearchParams());

/**
 * Forwards reads, even of public values if the request has a login, because a wrong password must get 401.
 * They count as misses unless the server checks the login.
 */
export function createForwardRead(host: Host, forward: Forward): Handler {
  const { refOf, upstreams, resolver } = host;
  return async function forwardRead(req, res, context) {
    const handle = refOf(readHandle(context.target.rawHandle ?? ''));
    context.handle = handle;
    if (context.onlyIfCached) throw notCached();
    const servers = upstreams.findServers(handle);
    const [server] = servers;
    // A handle of a repository, or without any server, has only a public record.
    if (server?.source.forwards !== true) {
      const origin = host.originOf(handle, { caller: context.caller });
      if (origin.refusal !== undefined) {
        if (req.method !== 'GET' && req.method !== 'HEAD') throw origin.refusal();
        return sendPublic(req, res, context, origin);
      }
    }
    const checksAll = servers.every(({ checksLogins }) => checksLogins);
    if (checksAll && identityOf(req.headers.authorization) !== undefined)
      return forward(req, res, context, server);
    const forwardWhole = async (): Promise<void> => {
      const closed = new Promise<void>((resolve) => res.once('close', resolve));
      await forward(req, res, context, server);
      await closed;
    };
    // A client that disconnects early learns nothing, so the result does not count.
    const isAnswered = (): boolean => res.writableFinished && res.statusCode < 500;
    return resolver.aroundMiss({
      handle,
      caller: context.caller,
      read: forwardWhole,
      isUnknown: () => (isAnswered() ? res.statusCode === 404 : undefined),
    });
  };
}

/** Serves a record without private values, from the cache too. */
async function sendPublic(
  req: IncomingMessage,
  res: ServerResponse,
  { parameters }: RequestContext,
  origin: OriginRecord,
): Promise<void> {
  const { authoritative, ...selection } = readRecordQuery(parameters);
  const answer = await origin.get({ authoritative, selection });
  await sendAnswer(req, res, answer);
}
