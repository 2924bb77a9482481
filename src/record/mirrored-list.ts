// Serves lists of a mirrored prefix from the mirror, byte for byte like its Handle server.
import type { Request, Response } from 'express';
import { type ListPage, listMembers } from '../handle/handle-list.js';
import { writeJson } from '../handle/json.js';
import { CACHE_NAME } from '../http/cache-headers.js';
import { contextOf } from '../http/context.js';
import { readParameters } from '../http/query.js';
import { sendReply } from '../http/reply.js';
import type { RunStepsOf } from '../http/request-work.js';
import type { Mirror } from '../mirror/mirror.js';
import { pageIn } from './repository-read.js';

export interface MirroredListDeps {
  mirror: Pick<Mirror, 'findList'>;
  now: () => number;
  /** Minimum body length for compression (bytes). */
  gzipMinBytes: number;
  runStepsOf: RunStepsOf;
}

/** Maximum handles of a response, and characters of their names: writing more would block the event loop. */
const MAX_HANDLES = 10_000;
const MAX_CHARS = 2 ** 20;
/** Maximum of a Java int, beyond which the server's index of a page overflows. */
const MAX_INT = 2 ** 31 - 1;

/** Parameters that have the same effect here and on a Handle server. */
const UNDERSTOOD: ReadonlySet<string> = new Set(['prefix', 'page', 'pageSize', 'pretty', 'callback']);
const NUMBER = /^\d{1,9}$/;

interface ListRequest {
  method: string;
  hasLogin: boolean;
  parameters: URLSearchParams;
}

type FoundList = ReturnType<Mirror['findList']>;

/** Returns the page to serve from the mirror; undefined if the request must be relayed. */
export function mirroredPage(
  { method, hasLogin, parameters }: ListRequest,
  list: FoundList,
): ListPage | undefined {
  if (list === undefined || !list.isPublic || !list.isWhole || !list.isCurrent) return undefined;
  if (hasLogin || (method !== 'GET' && method !== 'HEAD')) return undefined;
  const isUnderstood = [...parameters].every(
    ([name, text]) => UNDERSTOOD.has(name) && (!name.startsWith('page') || NUMBER.test(text)),
  );
  if (!isUnderstood) return undefined;
  const paging = pageIn(parameters);
  return isBounded(paging, list.handles) ? paging : undefined;
}

function isBounded({ page = 0, pageSize = MAX_INT }: ListPage, handles: readonly string[]): boolean {
  const [start, end] = [page * pageSize, (page + 1) * pageSize];
  if (end > MAX_INT || Math.min(end, handles.length) - start > MAX_HANDLES) return false;
  let chars = 0;
  for (let at = start; at < end && at < handles.length; at++) chars += handles[at]?.length ?? 0;
  return chars <= MAX_CHARS;
}

/** Serves a list; returns false, and sends no response, if it must come from the server. */
export async function readFromMirror(
  req: Request,
  res: Response,
  { mirror, now, gzipMinBytes, runStepsOf }: MirroredListDeps,
): Promise<boolean> {
  const context = contextOf(res);
  const parameters = readParameters(context.target.query);
  const prefix = parameters.get('prefix') ?? '';
  const list = mirror.findList(prefix);
  const hasLogin = req.headers.authorization !== undefined;
  const paging = mirroredPage({ method: req.method, hasLogin, parameters }, list);
  if (list === undefined || paging === undefined) return false;
  context.result = 'hit';
  const headers = {
    Age: String(Math.max(0, Math.floor((now() - list.listedAt) / 1000))),
    'Cache-Control': 'no-store',
    'Cache-Status': `${CACHE_NAME}; hit; detail=mirror`,
  };
  const json = writeJson(listMembers(prefix, list.handles, paging));
  await sendReply(req, res, { status: 200, json, headers, gzipMinBytes, runSteps: runStepsOf(res) });
  return true;
}
