// The reads that are sent to a Handle server with their login, and lists, at a repository: it has no logins and no private values.
import type { Request, Response } from 'express';
import { contextOf } from '../http/context.js';
import { readParameters, readRecordQuery } from '../http/query.js';
import { sendReply } from '../http/reply.js';
import type { Resolver } from '../resolver/resolver.js';
import type { Upstreams } from '../upstream/upstreams.js';
import { assertNoRepository } from '../write/origin-record.js';
import { type RecordReplyDeps, answerRecord } from './record-reply.js';

export interface RepositoryReadDeps extends RecordReplyDeps {
  upstreams: Pick<Upstreams, 'findServers'>;
  resolver: Pick<Resolver<unknown>, 'refOf' | 'resolve'>;
}

/** Answers a read of a record or a list; false, without an answer, if a Handle server is responsible. */
export async function readAtRepository(
  req: Request,
  res: Response,
  deps: RepositoryReadDeps,
): Promise<boolean> {
  const { handle, target, caller } = contextOf(res);
  const { upstreams, resolver } = deps;
  const parameters = readParameters(target.query);
  const prefix = parameters.get('prefix') ?? '';
  const [server] = upstreams.findServers(handle ?? resolver.refOf(`${prefix}/`));
  if (server === undefined || !server.isRepository) return false;
  if (req.method !== 'GET' && req.method !== 'HEAD') assertNoRepository(server);
  if (handle !== undefined) {
    const resolve: typeof resolver.resolve = (named, options) =>
      resolver.resolve(named, { ...options, caller });
    await answerRecord(req, res, { handle, query: readRecordQuery(parameters), deps: { ...deps, resolve } });
    return true;
  }
  const numberOf = (name: string): number | undefined => {
    const text = parameters.get(name) ?? '';
    return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
  };
  const [page, pageSize] = [numberOf('page'), numberOf('pageSize')];
  const paging = page === undefined || pageSize === undefined ? {} : { page, pageSize };
  const { status, body } = await server.list(prefix, paging);
  contextOf(res).result = 'bypass';
  const { gzipMinBytes, runStepsOf } = deps;
  const headers = { 'Cache-Control': 'no-store' };
  await sendReply(req, res, { status, json: body, headers, gzipMinBytes, runSteps: runStepsOf(res) });
  return true;
}
