// Responds to a handle request with a redirect, a page, JSON, or the locations as XML.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Entry } from '../cache/entry.js';
import { type HandleRef, handleToPath } from '../handle/handle.js';
import type { HandleValue } from '../handle/value.js';
import { firstOf } from '../hooks.js';
import { representRedirect } from '../html/send.js';
import { type Freshness, cacheHeaders, privateOnly } from '../http/cache-headers.js';
import { contextOf } from '../http/context.js';
import { prepareResponse, type Hit } from '../http/prepared-responses.js';
import { type RecordReplyDeps, answerRecord } from '../http/record-reply.js';
import { bodyOfEntry, render, type Representation } from '../http/reply.js';
import type { RunSteps } from '../http/request-work.js';
import { type ParsedValues, valuesOf } from '../resolver/parsed-records.js';
import { type FromEntry, type Resolution, existsBy, resultOf } from '../resolver/resolution.js';
import type { Resolver } from '../resolver/resolver.js';
import { runToEnd } from '../time-slicer.js';
import type { Admit } from '../upstream/caller.js';
import { type ResolvedHandle, earlierOf, followAliases } from './aliases.js';
import type {
  Finding,
  Pages,
  RecordLinks,
  RedirectTarget,
  StartedRequest,
  Extensions,
  HeaderLine,
  LinkedRecord,
  RedirectUrl,
} from './extension.js';
import { linksetType, NO_PARAMETERS, type RedirectQuery, prefersJson } from './request.js';
import { notFoundError, refusedError, sendProblem, type RedirectSender } from './sender.js';
import { escapeUnsafe, type UrlRules, toRedirectUrl, completeTarget, plainTarget } from './target.js';
import { selectedValues, type RedirectValues, isFamily, isOfType } from './values.js';

export interface RespondDeps extends RecordReplyDeps, PlainDeps {
  resolver: Pick<Resolver, 'fromMemory' | 'isLargeInMemory' | 'resolve'>;
  /** Judges requests that miss in memory, and returns their caller. */
  admit: Admit;
  refOf: (text: string) => HandleRef;
  sender: RedirectSender;
  redirectFreshness: Freshness;
}

/** A request and the dependencies for its response. */
interface RedirectCall {
  req: IncomingMessage;
  res: ServerResponse;
  deps: RespondDeps;
  query: RedirectQuery;
  run: RunSteps;
}

/** A request with the record at the end of its alias chain. */
interface FoundRecord extends RedirectCall {
  handle: HandleRef;
  aliases: readonly string[];
  resolution: FromEntry;
  /** The selected values that affect redirects. */
  values: readonly HandleValue[];
  /** The record that expires first, and so bounds the lifetime of the response. */
  earliest: FromEntry;
}

/** A request with its target. */
interface ResolvedRequest extends FoundRecord, Omit<Finding, 'used' | 'result'> {
  result: Finding['result'] | undefined;
}

interface HandleRequest {
  handle: HandleRef;
  query: RedirectQuery;
  deps: RespondDeps;
}

export async function respondToHandle(
  req: IncomingMessage,
  res: ServerResponse,
  { handle, query, deps }: HandleRequest,
): Promise<void> {
  const context = contextOf(res);
  context.handle = handle;
  const run = deps.runStepsOf(res);
  const call = { req, res, deps, query, run };
  const hit = findPlainHit(call, handle);
  if (hit !== undefined && (await sendPlain(call, { handle, resolution: hit }))) return;
  const caller = (context.caller ??= await deps.admit(req, res));
  const { authoritative } = query;
  const resolve = (name: HandleRef): Promise<Resolution> =>
    deps.resolver.resolve(name, { authoritative, caller });
  const first = { handle, resolution: hit ?? (await resolve(handle)) };
  if (query.show === 'api') await answerRecord(req, res, { ...first, query, deps });
  else if (hit !== undefined || !(await sendPlain(call, first))) await respondToRecord(call, first, resolve);
}

/** Responds to a resolved handle whose redirect may depend on more than its URL values. */
async function respondToRecord(
  call: RedirectCall,
  first: ResolvedHandle,
  resolve: (handle: HandleRef) => Promise<Resolution>,
): Promise<void> {
  const { req, res, deps, query, run } = call;
  const { resolution: requested } = first;
  Object.assign(contextOf(res), { result: resultOf(requested, query), exists: existsBy(requested) });
  const { end, ...chain } = await followAliases(first, { ...deps, query, resolve, run });
  const { resolution } = end;
  if (resolution.kind === 'refused') {
    const failure = refusedError(end.handle.text, resolution.refused);
    await sendProblem(failure, { req, res, handle: end.handle.text, sender: deps.sender });
    return;
  }
  const found = { ...call, ...chain, handle: end.handle, resolution, earliest: chain.earliest ?? resolution };
  const started: StartedRequest[] = [];
  for (const start of deps.extensions.startRequest) started.push(await start(found));
  if (await sendMissing(found, first.handle.text, started)) return;
  if (await sendAlias(found)) return;
  const request = await find(found, started);
  reportStale(request);
  await respond(request);
}

/**
 * Returns the entry of an anonymous GET without parameters if it is fresh in memory, which needs no admission.
 * A large entry is read in a slice instead.
 */
function findPlainHit(
  { req, query, deps: { resolver } }: RedirectCall,
  handle: HandleRef,
): FromEntry | undefined {
  if (query !== NO_PARAMETERS || req.method === 'POST' || req.headers.authorization !== undefined)
    return undefined;
  return resolver.isLargeInMemory(handle) ? undefined : resolver.fromMemory(handle);
}

/** Sends a redirect that depends only on the record's URL values; returns false if there is none. */
async function sendPlain(
  { req, res, deps, query }: RedirectCall,
  { handle, resolution }: ResolvedHandle,
): Promise<boolean> {
  if (query !== NO_PARAMETERS || resolution.kind !== 'entry') return false;
  const now = deps.context.clock.now();
  const plain = plainRedirect(resolution, { handle, now, deps });
  if (plain === undefined) return false;
  const context = contextOf(res);
  Object.assign(context, { result: resultOf(resolution, query), exists: existsBy(resolution) });
  const headers = cacheHeaders({ resolution, authoritative: false, now, freshness: deps.redirectFreshness });
  await deps.sender.sendRedirect(req, res, { ...plain, headers });
  if (isPlainHit({ req, res, resolution })) {
    prepareResponse(deps.prepared, { target: context.target.raw, handle, entry: resolution.entry, ...plain });
  }
  return true;
}

/** Reports the response as stale if one of its records is stale. */
function reportStale({ res, deps, query, earliest }: FoundRecord): void {
  if (earliest.stale === undefined) return;
  deps.context.metrics.countStale(earliest.stale);
  contextOf(res).result = resultOf(earliest, query);
}

/**
 * Sends the error for a missing handle, or that of a plugin; returns false otherwise. `handle` is the requested
 * handle.
 */
async function sendMissing(
  found: FoundRecord,
  handle: string,
  started: readonly StartedRequest[],
): Promise<boolean> {
  const { req, res, deps, resolution } = found;
  const isMissing = resolution.entry.kind === 'not-found';
  const failure =
    firstOf(started, (each) => each.failure) ??
    (isMissing ? notFoundError(handle, found.handle.text) : undefined);
  if (failure === undefined) return false;
  const earliest = started.flatMap(({ record = [] }) => record).reduce(earlierOf, found.earliest);
  reportStale({ ...found, earliest });
  const headers = headersOf({ ...found, earliest }, deps.redirectFreshness);
  const contact = firstOf(started, (each) => each.contact);
  await sendProblem(failure, { req, res, handle, contact, headers, sender: deps.sender });
  return true;
}

/** Finds the target by plugins; without a result, the URL values decide. */
async function find(found: FoundRecord, started: readonly StartedRequest[]): Promise<ResolvedRequest> {
  const { values, resolution } = found;
  for (const each of started) {
    const finding = await each.find(values, resolution);
    if (finding === undefined) continue;
    const { used, ...rest } = finding;
    return { ...found, ...rest, earliest: used.reduce(earlierOf, found.earliest) };
  }
  const chars = resolution.entry.values.length;
  return { ...found, result: undefined, chars, isOfRecordAlone: true, isComplete: true };
}

function headersOf({ query, earliest, deps }: FoundRecord, freshness: Freshness): Record<string, string> {
  const { authoritative } = query;
  return cacheHeaders({ resolution: earliest, authoritative, now: deps.context.clock.now(), freshness });
}

async function respond(request: ResolvedRequest): Promise<void> {
  const { req, query, values, result = plainTarget(values), deps } = request;
  const { accept } = req.headers;
  if ('text' in result) {
    await sendLocations(request, result);
    return;
  }
  const target = completeTarget(result, query, deps.urls);
  const links = await readLinks(request, target);
  const [linked] = links;
  const { url } = target;
  const { pages } = deps.sender;
  if (query.show === 'linkset' && linked !== undefined) await sendLinkset(request, linked);
  else if (query.show === 'redirect' && url?.ok === true) await redirect(request, { target, links }, url.url);
  else if (pages === undefined || prefersJson(accept)) await sendRecord(request);
  else await sendRecordPage(request, { target, links }, pages);
}

/** The target of a record and the typed links of plugins. */
interface LinkedTarget {
  target: RedirectTarget;
  links: readonly RecordLinks[];
}

async function readLinks(request: ResolvedRequest, target: RedirectTarget): Promise<RecordLinks[]> {
  const { handle, query, resolution, deps, run } = request;
  const all: RecordLinks[] = [];
  if (deps.extensions.readLinks.length === 0) return all;
  const { length } = resolution.entry.values;
  const values = await run(selectedValues(resolution.entry, query), length);
  const to = target.url?.ok === true ? target.url.url : undefined;
  const record = { handle: handle.text, target: to, headers: target.headers };
  for (const read of deps.extensions.readLinks) all.push(await run(read(values, record), length));
  return all;
}

async function sendLinkset(request: ResolvedRequest, links: RecordLinks): Promise<void> {
  const { req, res, deps, query } = request;
  const contentType = linksetType(query, req.headers.accept);
  await deps.sender.sendText(req, res, {
    contentType,
    text: links.linkset(contentType),
    headers: { ...pageHeaders(request), ...deps.sender.securityHeaders },
    varies: query.linksetFormat === undefined ? ['Accept'] : [],
  });
}

/** Returns headers that make clients revalidate pages and link sets before reuse. */
const pageHeaders = (request: FoundRecord): Record<string, string> => ({
  ...headersOf(request, request.deps.freshness),
  'Cache-Control': 'no-cache',
});

/** Redirects an alias permanently to this proxy's URL for the last handle; returns false if none was sent. */
async function sendAlias(request: FoundRecord): Promise<boolean> {
  const { req, res, handle, aliases, deps } = request;
  if (request.query.show !== 'redirect' || aliases.length === 0 || req.method === 'POST') return false;
  reportStale(request);
  const { query } = contextOf(res).target;
  const path = `/${handleToPath(handle.text)}`;
  // Node decodes raw bytes as Latin-1; RFC 3986 requires them to be escaped.
  const url = query === '' ? path : `${path}?${escapeUnsafe(Buffer.from(query, 'latin1').toString())}`;
  const headers = headersOf(request, deps.redirectFreshness);
  const status = request.query.isDry ? 200 : 301;
  await deps.sender.sendRedirect(req, res, { status, headers, made: representRedirect({ url }) });
  return true;
}

async function redirect(
  request: ResolvedRequest,
  { target, links }: LinkedTarget,
  url: string,
): Promise<void> {
  const { req, res, deps } = request;
  const { isRandom, variation } = target;
  const headers = redirectHeaders(request);
  // Allows only the client to cache a random or address-based choice; a shared cache would serve it to all.
  if (isRandom || variation.isByAddress) {
    headers['Cache-Control'] = privateOnly(headers['Cache-Control'] ?? '');
  }
  const status = statusFor(request, target);
  const lines = [...target.headers, ...links.flatMap((each) => each.onRedirect())];
  const made = representRedirect({ url, varies: variation.headers, lines });
  await deps.sender.sendRedirect(req, res, { status, headers, made });
  if (isPlainHit(request) && dependsOnEntryOnly(request, target) && isPreparable(status)) {
    prepareRedirect(request, status, made);
  }
}

/** Prepares the redirect for later requests. */
function prepareRedirect(
  { res, deps, handle, resolution }: ResolvedRequest,
  status: number,
  made: Representation,
): void {
  const { dependencyOf } = deps.extensions;
  const dependency = dependencyOf?.(handle, deps.context.clock.now());
  if (dependencyOf !== undefined && dependency === undefined) return;
  prepareResponse(deps.prepared, {
    target: contextOf(res).target.raw,
    handle,
    entry: resolution.entry,
    status,
    made,
    dependency,
  });
}

function redirectHeaders(request: ResolvedRequest): Record<string, string> {
  const headers = headersOf(request, request.deps.redirectFreshness);
  // An invalid `Expires` counts as past (RFC 9111 section 5.3).
  return request.isComplete ? headers : { ...headers, 'Cache-Control': 'no-store', Expires: '0' };
}

/** Replaces 303, 307 and 308, which HTTP/1.0 lacks, with 302 (RFC 9110 section 15.4). */
function statusFor({ req, query }: ResolvedRequest, { status }: RedirectTarget): number {
  if (query.isDry) return 200;
  return req.httpVersion === '1.0' && status > 302 ? 302 : status;
}

/** Prepared responses recognise only these redirect statuses. */
const isPreparable = (status: number): boolean => status === 301 || status === 302;

const isPlainHit = ({ req, res, resolution }: Pick<ResolvedRequest, 'req' | 'res' | 'resolution'>): boolean =>
  req.method !== 'POST' && contextOf(res).result === 'hit' && resolution.from === 'memory';

const dependsOnEntryOnly = (
  { isOfRecordAlone }: ResolvedRequest,
  { isRandom, variation, status }: RedirectTarget,
): boolean =>
  isOfRecordAlone && !isRandom && !variation.isByAddress && variation.headers.length === 0 && status <= 302;

async function sendRecordPage(
  request: ResolvedRequest,
  { target, links }: LinkedTarget,
  pages: Pages,
): Promise<void> {
  const { req, res, deps, query, handle, aliases, resolution, run } = request;
  const { authoritative } = query;
  const { entry } = resolution;
  const values = await run(selectedValues(entry, query), entry.values.length);
  const { clock } = deps.context;
  const shown = { handle: handle.text, aliases, values, target, resolution, authoritative };
  const making = pages.record({ ...shown, now: clock.now(), wallTime: clock.wall() });
  const html = await run(making, entry.values.length);
  const lines = links.flatMap((each) => each.onPage());
  const headers = { ...pageHeaders(request), ...Object.fromEntries(lines) };
  await deps.sender.sendHtml(req, res, { html, headers, varies: ['Accept'] });
}

async function sendRecord(request: ResolvedRequest): Promise<void> {
  const { req, res, deps, query, handle, resolution, run } = request;
  const headers = headersOf(request, deps.freshness);
  const { entry } = resolution;
  const { status, json } = await run(bodyOfEntry(entry, handle.text, query), entry.values.length);
  const rendered = await run(render(json, contextOf(res).format), json.length);
  await deps.sender.sendText(req, res, { status, ...rendered, headers, varies: ['Accept'] });
}

async function sendLocations(
  request: ResolvedRequest,
  response: { contentType: string; text: string },
): Promise<void> {
  const { req, res, deps } = request;
  await deps.sender.sendText(req, res, {
    ...response,
    headers: { ...redirectHeaders(request), ...deps.sender.securityHeaders },
  });
}

interface PlainDeps {
  urls: UrlRules;
  extensions: Extensions;
  values: RedirectValues;
}

type PlainRedirect = Pick<Hit, 'status' | 'made' | 'dependency'>;

/** Maximum record length here; longer records are parsed in slices elsewhere. */
const MAX_CHARS = 16 * 1024;

/**
 * Finds the redirect for a request without parameters. Returns undefined if the record has no valid redirect
 * target, or if an alias, a list, the prefix or request headers may affect the result.
 */
function plainRedirect(
  { entry, stale }: FromEntry,
  { handle, now, deps }: { handle: HandleRef; now: number; deps: PlainDeps },
): PlainRedirect | undefined {
  const { extensions } = deps;
  const { dependencyOf } = extensions;
  const dependency = dependencyOf?.(handle, now);
  if (stale !== undefined || (dependencyOf !== undefined && dependency === undefined)) return undefined;
  const { to, values = [] } = findUrl(entry, deps) ?? {};
  if (to?.ok !== true) return undefined;
  const lines = linkLines(extensions, values, { handle: handle.text, target: to.url, headers: [] });
  return { status: 302, made: representRedirect({ url: to.url, lines }), dependency };
}

const linkLines = ({ readLinks }: Extensions, values: ParsedValues, record: LinkedRecord): HeaderLine[] =>
  readLinks.flatMap((read) => runToEnd(read(values, record)).onRedirect());

/** Returns the redirect URL and all values of the record. */
function findUrl(
  entry: Entry,
  { urls, values: { mayMatter }, extensions: { patterns } }: PlainDeps,
): { to: RedirectUrl; values: ParsedValues } | undefined {
  const { kind, values: text } = entry;
  if (kind !== 'found' || text.length > MAX_CHARS) return undefined;
  // A matching record is not parsed here. The patterns only save time: the types decide.
  if (patterns.some((pattern) => pattern.test(text))) return undefined;
  const values = valuesOf(entry);
  const relevant = values.filter(mayMatter);
  if (!relevant.every((value) => isFamily(value, 'URL') || isOfType(value, '0.TYPE/URL'))) return undefined;
  const { chosen } = plainTarget(relevant);
  return chosen && { to: toRedirectUrl(chosen.text, urls), values };
}
