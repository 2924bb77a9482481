// Reads a record: from the cache for anyone, from the Handle server with a login or for private values.
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import type { PreparedCache } from '../cache/prepared-cache.js';
import { freshnessRules } from '../http/cache-headers.js';
import { contextOf } from '../http/context.js';
import { readRecordQuery } from '../http/query.js';
import { answerRecord } from '../http/record-reply.js';
import type { RunStepsOf } from '../http/request-work.js';
import type { Listener } from '../http/route-table.js';
import { rawHandleOf, readHandle } from '../http/target.js';
import type { Resolver } from '../resolver/resolver.js';
import type { FindClient } from '../server/client-address.js';
import type { Admit } from '../upstream/caller.js';

interface ReadParts {
  resolver: Pick<Resolver, 'read' | 'refOf'>;
  /** Judges reads that miss in memory. */
  admit: Admit;
  findClient: FindClient;
  prepared: PreparedCache;
  runStepsOf: RunStepsOf;
  /** Forwards a read, also of public values, if the request has a login, because a wrong password must get 401. */
  forwardRead: Listener;
}

/** Creates the handler of GET requests for a handle. */
export function createReadRecord(config: Pick<Config, 'http'>, context: Context, parts: ReadParts): Listener {
  const { resolver, admit, findClient, forwardRead } = parts;
  const { freshness } = freshnessRules(config, context);
  const deps = { ...parts, context, freshness, gzipMinBytes: config.http.gzipMinBytes };
  const forward: Listener = async (req, res) => {
    contextOf(res).caller = await admit(req, res);
    await forwardRead(req, res);
  };

  return async function readRecord(req, res) {
    if (req.headers.authorization !== undefined) return forward(req, res);
    const { target, parameters } = contextOf(res);
    const handle = resolver.refOf(readHandle(rawHandleOf(target.path) ?? ''));
    contextOf(res).handle = handle;
    const query = readRecordQuery(parameters);
    if (!query.publicOnly) return forward(req, res);
    const { authoritative } = query;
    const resolution = await resolver.read(handle, {
      authoritative,
      admit: () => admit(req, res),
      client: () => findClient(req).network,
    });
    return answerRecord(req, res, { handle, query, resolution, deps });
  };
}
