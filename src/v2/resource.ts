// The resources of ePIC v2 (list of prefixes, collection, handle): their paths, methods and OPTIONS.
import type { Request, Response } from 'express';
import { ServiceError } from '../errors.js';
import { parseHandle } from '../handle/handle.js';
import { contextOf } from '../http/context.js';
import { answerPreflight, isPreflight } from '../http/cors.js';
import { readHandle } from '../http/target.js';
import { send } from './response.js';

/** `rawHandle` is the path as the client spelled it, without the tolerated trailing slash. */
export interface HandleResource {
  kind: 'handle';
  handle: string;
  rawHandle: string;
}

export interface Collection {
  kind: 'collection';
  prefix: string;
}

export type Resource = { kind: 'prefixes' } | Collection | HandleResource;

const BASE = '/api/v2/handles';

/**
 * Parses the raw path. Clients of v2 send a trailing slash, which is ignored after a prefix or a suffix. Any
 * other slash, `%2F` or plain, is part of the suffix; `+` is a plus.
 *
 * @throws ServiceError when the path is not a handle, or not under `/api/v2/handles`
 */
export function readResource(res: Response): Resource {
  const context = contextOf(res);
  const { path } = context.target;
  if (path === BASE || path === `${BASE}/`) return { kind: 'prefixes' };
  if (!path.startsWith(`${BASE}/`)) {
    throw new ServiceError('UNKNOWN_ENDPOINT', { detail: 'everything is under /api/v2/handles' });
  }
  const raw = path.slice(BASE.length + 1);
  const bare = raw.replace(/\/$/, '');
  const prefix = parseHandle(bare);
  if (prefix.ok && !prefix.handle.includes('/')) return { kind: 'collection', prefix: prefix.handle };
  // `P//` cannot mean the collection `P/`: the second slash is the suffix.
  const rawHandle = /^[^/]+\/$/.test(bare) ? raw : bare;
  context.handle = readHandle(rawHandle);
  return { kind: 'handle', handle: context.handle, rawHandle };
}

const METHODS: Readonly<Record<Resource['kind'], readonly string[]>> = {
  prefixes: ['GET', 'HEAD', 'OPTIONS'],
  collection: ['GET', 'HEAD', 'POST', 'OPTIONS'],
  handle: ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS'],
};

const ADVICE: Readonly<Record<Resource['kind'], string>> = {
  prefixes: 'this is the list of prefixes; write to /api/v2/handles/<prefix>/<suffix>',
  collection: 'this is a prefix; PUT and DELETE need a suffix after it',
  handle: 'this is a handle; POST to /api/v2/handles/<prefix> to have a new one named',
};

/** @throws ServiceError METHOD_REFUSED */
export function assertMethod({ method }: Request, { kind }: Resource): void {
  if (METHODS[kind].includes(method)) return;
  throw new ServiceError('METHOD_REFUSED', { detail: ADVICE[kind], allow: METHODS[kind] });
}

/** Request headers of conditional writes, lists and POST, beside those that every interface allows. */
const REQUEST_HEADERS = [
  'If-Match',
  'If-None-Match',
  'If-Modified-Since',
  'If-Unmodified-Since',
  'Depth',
  'Idempotency-Key',
];

export function answerOptions(req: Request, res: Response): void {
  const { kind } = readResource(res);
  if (isPreflight(req)) answerPreflight(req, res, REQUEST_HEADERS);
  else send(res, { status: 204, headers: { Allow: METHODS[kind].join(', ') } });
}
