// Responds to a request for a handle: with a redirect, its page, its JSON, or its locations as XML.
import type { Request, Response } from 'express';
import { handleToPath } from '../handle/handle.js';
import { type HandleValue, createValueFilter } from '../handle/value.js';
import { type PageSender, sendRedirect } from '../html/send.js';
import { bodyOfEntry, render } from '../http/body.js';
import { type Freshness, cacheHeaders, privateOnly } from '../http/cache-headers.js';
import { contextOf } from '../http/context.js';
import { type RecordRouteDeps, answerRecord, resultOf } from '../record/record-reply.js';
import type { FromEntry, Resolution } from '../resolver/resolution.js';
import { prefersJson } from './accept.js';
import { type AliasChain, type ResolvedHandle, followAliases } from './aliases.js';
import { writeLocations } from './locations.js';
import { notFoundError, refusedError, sendProblem } from './problems.js';
import { recordPage } from './record-page.js';
import { escapeUnsafe } from './redirect-url.js';
import { type RedirectQuery, readRedirectQuery } from './request.js';
import { type RedirectTarget, type TargetDeps, findTarget } from './target.js';
import { valuesOf } from './values.js';

export interface RespondDeps extends RecordRouteDeps {
  /** The cache key of a handle: all spellings of a handle have the same key. */
  keyOf: (handle: string) => string;
  target: TargetDeps;
  sender: PageSender;
  redirectFreshness: Freshness;
}

/** A request and the record for the response, after all aliases. */
interface ResolvedRequest {
  req: Request;
  res: Response;
  deps: RespondDeps;
  query: RedirectQuery;
  handle: string;
  aliases: readonly string[];
  resolution: FromEntry;
  values: HandleValue[];
  /** When several records were read, the response expires with the first of them. */
  earliest: FromEntry;
}

export async function respondToHandle(
  req: Request,
  res: Response,
  { handle, parameters, deps }: { handle: string; parameters: URLSearchParams; deps: RespondDeps },
): Promise<void> {
  contextOf(res).handle = handle;
  const query = readRedirectQuery(parameters);
  if (query.show === 'api') {
    await answerRecord(req, res, { handle, query: query, deps });
    return;
  }
  const first = { handle, resolution: await deps.resolve(handle, query) };
  contextOf(res).result = resultOf(first.resolution, query);
  const chain = await resolveAliases(first, query, deps);
  const { handle: end, resolution } = chain.end;
  if (resolution.kind === 'refused') {
    const failure = refusedError(end, resolution.refused);
    await sendProblem(req, res, { failure, handle: end, sender: deps.sender });
    return;
  }
  if (resolution.stale !== undefined) deps.onStale(resolution.stale);
  const { aliases, earliest = resolution } = chain;
  if (resolution.entry.kind === 'not-found') {
    const headers = headersOf({ query, earliest, deps }, deps.redirectFreshness);
    const failure = notFoundError(handle, end);
    await sendProblem(req, res, { failure, handle, headers, sender: deps.sender });
    return;
  }
  const values = valuesOf(resolution.entry);
  await respond({ req, res, deps, query, handle: end, aliases, resolution, values, earliest });
}

async function resolveAliases(
  first: ResolvedHandle,
  query: RedirectQuery,
  deps: RespondDeps,
): Promise<AliasChain> {
  if (!query.followAliases) return { end: first, aliases: [], earliest: undefined };
  const resolve = (handle: string): Promise<Resolution> => deps.resolve(handle, query);
  return followAliases(first, { resolve, keyOf: deps.keyOf });
}

function headersOf(
  { query, earliest, deps }: Pick<ResolvedRequest, 'query' | 'earliest' | 'deps'>,
  freshness: Freshness,
): Record<string, string> {
  const { authoritative } = query;
  return cacheHeaders({ resolution: earliest, authoritative, now: deps.now(), freshness });
}

async function respond(request: ResolvedRequest): Promise<void> {
  const { req, query, aliases, handle, values, deps } = request;
  if (query.show === 'locations') {
    await sendLocations(request);
    return;
  }
  if (query.show === 'redirect' && aliases.length > 0 && req.method !== 'POST') {
    redirectToAlias(request);
    return;
  }
  const { accept } = req.headers;
  const target = findTarget({ handle, values, query, accept }, deps.target);
  if (query.show === 'redirect' && target.url?.ok === true) redirect(request, target, target.url.url);
  else if (prefersJson(accept)) await sendRecord(request);
  else await sendRecordPage(request, target);
}

/** A permanent redirect to the URL of the last handle on this proxy. */
function redirectToAlias(request: ResolvedRequest): void {
  const { res, handle, deps } = request;
  const { query } = contextOf(res).target;
  const path = `/${handleToPath(handle)}`;
  // Node reads raw bytes as Latin-1; RFC 3986 wants them escaped.
  const url = query === '' ? path : `${path}?${escapeUnsafe(Buffer.from(query, 'latin1').toString())}`;
  const headers = headersOf(request, deps.redirectFreshness);
  sendRedirect(res, { status: 301, url, headers, variesByAccept: false });
}

function redirect(request: ResolvedRequest, target: RedirectTarget, url: string): void {
  const { req, res, deps, handle, resolution } = request;
  const { isRandom, variesByAccept } = target;
  const headers = headersOf(request, deps.redirectFreshness);
  // The client may store a random choice; a shared cache would give it to every client.
  if (isRandom) headers['Cache-Control'] = privateOnly(headers['Cache-Control'] ?? '');
  // RFC 9110 section 15.4: HTTP/1.0 does not have 303, 307 and 308.
  const status = req.httpVersion === '1.0' && target.status > 302 ? 302 : target.status;
  const made = sendRedirect(res, { status, url, headers, variesByAccept });
  if (isPlainHit(request) && dependsOnEntryOnly(target))
    deps.onHit({ target: req.url, handle, entry: resolution.entry, status, made });
}

const isPlainHit = ({ req, res, resolution }: ResolvedRequest): boolean =>
  req.method !== 'POST' && contextOf(res).result === 'hit' && resolution.from === 'memory';

const dependsOnEntryOnly = ({ isRandom, variesByAccept, status }: RedirectTarget): boolean =>
  !isRandom && !variesByAccept && status <= 302;

async function sendRecordPage(request: ResolvedRequest, target: RedirectTarget): Promise<void> {
  const { req, res, deps, query, handle, aliases, resolution } = request;
  const { authoritative } = query;
  const values = request.values.filter(createValueFilter(query));
  const page = recordPage({ handle, aliases, values, target, resolution, authoritative, now: deps.now() });
  // Browsers revalidate a page; the response is usually a 304.
  const headers = { ...headersOf(request, deps.freshness), 'Cache-Control': 'no-cache' };
  await deps.sender.sendPage(req, res, { page, headers, variesByAccept: true });
}

async function sendRecord(request: ResolvedRequest): Promise<void> {
  const { req, res, deps, query, handle, resolution } = request;
  const headers = headersOf(request, deps.freshness);
  const { status, json } = bodyOfEntry(resolution.entry, handle, query);
  const { contentType, bytes } = render(json, contextOf(res).format);
  const text = bytes.toString();
  await deps.sender.sendText(req, res, { status, contentType, text, headers, variesByAccept: true });
}

async function sendLocations(request: ResolvedRequest): Promise<void> {
  const { req, res, deps, query, handle, values } = request;
  const text = writeLocations(values.filter(createValueFilter(query)), {
    handle,
    parse: deps.target.parseLocations,
  });
  await deps.sender.sendText(req, res, {
    contentType: 'text/xml;charset=utf-8',
    text,
    headers: { ...headersOf(request, deps.redirectFreshness), ...deps.sender.securityHeaders },
  });
}
