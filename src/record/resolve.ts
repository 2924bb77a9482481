// GET, HEAD and POST of a handle: from the cache where that is allowed, else from the upstream.
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import type { Entry } from '../cache/entry.js';
import { ServiceError } from '../errors.js';
import { type ParsedHandle, parseHandle } from '../handle/handle.js';
import type { FromEntry, Resolution, StaleReason } from '../resolver/resolution.js';
import { bodyOfEntry, bodyOfMembers } from '../http/body.js';
import { cacheHeaders } from '../http/cache-headers.js';
import { type Result, contextOf } from '../http/context.js';
import { type Question, readParameters, readQuestion } from '../http/query.js';
import { type Reply, sendReply } from '../http/reply.js';
import type { Representation } from '../http/representation.js';
import { rawHandleOf } from '../http/target.js';

export interface ResolveDeps {
  resolve: (handle: string, options: { authoritative: boolean }) => Promise<Resolution>;
  /** Passes the request on as it is: for callers whose answer must not be shared. */
  passThrough: RequestHandler;
  clientMaxAgeMs: number;
  gzipMinBytes: number;
  onStale: (reason: StaleReason) => void;
  /** A fresh entry in memory answered: the same can be said next time without all this. */
  onHit: (hit: Hit) => void;
  now: () => number;
}

export interface Hit {
  /** The raw request target. */
  target: string;
  handle: string;
  entry: Entry;
  status: number;
  made: Representation;
}

export function createResolveRoute(deps: ResolveDeps): RequestHandler {
  return async function resolveRoute(req: Request, res: Response, next: NextFunction): Promise<void> {
    const context = contextOf(res);
    const parameters = readParameters(context.target.query);
    const rawHandle = rawHandleOf(context.target.path) ?? '';
    const isList = rawHandle === '' && parameters.has('prefix');
    if (!isList) context.handle = readHandle(rawHandle);
    if (context.handle === undefined || mustTravel(req, parameters)) await deps.passThrough(req, res, next);
    else await answerRecord(req, res, { handle: context.handle, question: readQuestion(parameters), deps });
  };
}

export interface Asking {
  handle: string;
  question: Question;
  deps: Omit<ResolveDeps, 'passThrough'>;
}

/** Answers a question about a handle with JSON. */
export async function answerRecord(req: Request, res: Response, asking: Asking): Promise<void> {
  const { handle, question, deps } = asking;
  const context = contextOf(res);
  const resolution = await (context.begun ?? deps.resolve(handle, question));
  context.result = resultOf(resolution, question);
  const reply = replyTo(resolution, asking);
  const made = await sendReply(req, res, { ...reply, gzipMinBytes: deps.gzipMinBytes });
  if (resolution.kind === 'entry') tellOfAnswer(req.url, { resolution, status: reply.status, made }, asking);
}

interface Answered {
  resolution: FromEntry;
  status: number;
  made: Representation;
}

export function tellOfAnswer(
  target: string,
  { resolution, status, made }: Answered,
  { handle, question, deps }: Asking,
): void {
  const { entry, from, stale } = resolution;
  if (stale !== undefined) deps.onStale(stale);
  if (resultOf(resolution, question) === 'hit' && from === 'memory') {
    deps.onHit({ target, handle, entry, status, made });
  }
}

/**
 * Design decision 2: with credentials a wrong password has to be 401 even for public data. A POST is a read
 * (recordings "POST /api/handles/<handle> … = GET"), but RFC 9111 section 4 wants it written through.
 */
function mustTravel(req: Request, parameters: URLSearchParams): boolean {
  const { method, headers } = req;
  return method === 'POST' || headers.authorization !== undefined || !readQuestion(parameters).publicOnly;
}

/** @throws ServiceError when the raw path is no handle */
export function readHandle(rawHandle: string): string {
  const parsed = parseHandle(rawHandle);
  if (parsed.ok) return parsed.handle;
  throw problemOf(parsed.problem);
}

function problemOf(problem: Extract<ParsedHandle, { ok: false }>['problem']): ServiceError {
  switch (problem) {
    case 'empty':
      return new ServiceError('EMPTY_HANDLE');
    case 'too-long':
      return new ServiceError('HANDLE_TOO_LONG');
    case 'bad-escape':
      return new ServiceError('BAD_PATH', { detail: 'a % is not followed by two hex digits' });
    case 'null-byte':
      return new ServiceError('BAD_PATH', { detail: '%00 cannot be part of a handle' });
  }
}

function replyTo(resolution: Resolution, { handle, question, deps }: Asking): Reply {
  if (resolution.kind === 'entry') return replyFromEntry(resolution, { handle, question, deps });
  const { status, members, namesHandle, retryAfter } = resolution.refused;
  return {
    status,
    json: bodyOfMembers(members, namesHandle ? handle : undefined),
    headers: {
      'Cache-Control': 'no-store',
      ...(retryAfter === undefined ? {} : { 'Retry-After': retryAfter }),
    },
  };
}

export function replyFromEntry(resolution: FromEntry, { handle, question, deps }: Asking): Reply {
  const headers = cacheHeaders({
    resolution,
    authoritative: question.authoritative,
    now: deps.now(),
    clientMaxAgeMs: deps.clientMaxAgeMs,
  });
  return { ...bodyOfEntry(resolution.entry, handle, question), headers };
}

export function resultOf(resolution: Resolution, { authoritative }: Pick<Question, 'authoritative'>): Result {
  if (resolution.kind === 'refused') return 'refused';
  if (authoritative) return 'authoritative';
  if (resolution.stale !== undefined) return 'stale';
  return resolution.from === 'upstream' ? 'miss' : 'hit';
}
