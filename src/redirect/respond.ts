// Responds to a handle request with a redirect, a page, JSON, or the locations as XML.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Entry } from '../cache/entry.js';
import { toBytes } from '../handle/bytes.js';
import { type HandleRef, handleToPath, prefixRecordOf } from '../handle/handle.js';
import type { HandleValue } from '../handle/value.js';
import { HTML_TYPE, escapeText } from '../html/html.js';
import {
  type Freshness,
  cacheHeaders,
  isOnlyIfCached,
  privateOnly,
  recordLines,
  varyOf,
} from '../http/cache-headers.js';
import type { RequestContext } from '../http/context.js';
import { prepareResponse } from '../http/prepared-responses.js';
import { linesOf } from '../http/raw-response.js';
import { type Representation, bodyOfEntry, renderText, sendMade } from '../http/reply.js';
import { type FromEntry, type Resolution, existsBy, resultOf } from '../resolver/loader.js';
import { type ParsedValues, valuesOf } from '../resolver/parsed-records.js';
import { runToEnd } from '../time-slicer.js';
import { type ResolvedHandle, earlierOf, followAliases } from './aliases.js';
import {
  type RedirectCall,
  type Redirects,
  notFoundError,
  refusedError,
  sendCompressible,
  sendRedirectProblem,
} from './call.js';
import type {
  Finding,
  HeaderLine,
  Pages,
  RecordLinks,
  RedirectTarget,
  RedirectUrl,
  StartedRequest,
} from './extension.js';
import { combineHeaderLines } from './link-header.js';
import { NO_PARAMETERS, type RedirectQuery, linksetType, prefersJson } from './request.js';
import { completeTarget, escapeUnsafe, plainTarget, toRedirectUrl } from './target.js';
import { isFamily, isOfType, selectedValues } from './values.js';

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
interface ResolvedRequest extends FoundRecord {
  finding: Finding;
}

export async function respondToHandle(
  redirects: Redirects,
  req: IncomingMessage,
  res: ServerResponse,
  { context, handle, query }: { context: RequestContext; handle: HandleRef; query: RedirectQuery },
): Promise<void> {
  const { admit, answerRecord, host } = redirects;
  context.handle = handle;
  const call = { req, res, context, redirects, query, run: host.runStepsOf(res) };
  const hit = findPlainHit(call, handle);
  if (hit !== undefined && (await sendPlain(call, { handle, resolution: hit }))) return;
  const caller = (context.caller ??= await admit(req, res, context));
  const options = { authoritative: query.authoritative, onlyIfCached: isOnlyIfCached(req), caller };
  const resolve = (name: HandleRef): Promise<Resolution> => host.resolver.resolve(name, options);
  const first = { handle, resolution: hit ?? (await resolve(handle)) };
  if (query.show === 'api') await answerRecord(req, res, { ...first, query });
  else if (hit !== undefined || !(await sendPlain(call, first))) await respondToRecord(call, first, resolve);
}

/** Responds to a resolved handle whose redirect may depend on more than its URL values. */
async function respondToRecord(
  call: RedirectCall,
  first: ResolvedHandle,
  resolve: (handle: HandleRef) => Promise<Resolution>,
): Promise<void> {
  const { context, redirects, query } = call;
  const { resolution: requested } = first;
  context.result = resultOf(requested, query);
  context.exists = existsBy(requested);
  const { end, ...chain } = await followAliases(first, call, resolve);
  const { resolution } = end;
  if (resolution.kind === 'refused') {
    const failure = refusedError(end.handle.text, resolution.refused);
    await sendRedirectProblem(call, failure, { handle: end.handle.text });
    return;
  }
  const found = { ...call, ...chain, handle: end.handle, resolution, earliest: chain.earliest ?? resolution };
  const started: StartedRequest[] = [];
  for (const start of redirects.extensions.startRequest) started.push(await start(found));
  if (await sendMissing(found, first.handle.text, started)) return;
  if (await sendAlias(found)) return;
  const finding = await findingOf(found, started);
  const request = { ...found, finding, earliest: finding.used.reduce(earlierOf, found.earliest) };
  reportStale(request);
  await respondWith(request);
}

/**
 * Returns the entry of an anonymous GET without parameters if it is fresh in memory, which needs no admission.
 * A large entry is read in a slice instead.
 */
function findPlainHit(
  { req, query, redirects: { host } }: RedirectCall,
  handle: HandleRef,
): FromEntry | undefined {
  if (query !== NO_PARAMETERS || req.method === 'POST' || req.headers.authorization !== undefined)
    return undefined;
  return host.resolver.isLargeInMemory(handle) === false ? host.resolver.fromMemory(handle) : undefined;
}

/** Sends a redirect that depends only on the record's URL values; returns false if there is none. */
async function sendPlain(
  { req, res, context, redirects, query }: RedirectCall,
  { handle, resolution }: ResolvedHandle,
): Promise<boolean> {
  if (query !== NO_PARAMETERS || resolution.kind !== 'entry') return false;
  const { host, prepared, redirectFreshness: freshness } = redirects;
  const found = resolution.stale === undefined ? findUrl(resolution.entry, redirects) : undefined;
  if (found?.to.ok !== true) return false;
  const now = host.clock.now();
  const plain = plainRedirect(redirects, { handle, resolution, values: found.values }, found.to.url, now);
  if (plain === undefined) return false;
  context.result = resultOf(resolution, query);
  context.exists = existsBy(resolution);
  const headers = cacheHeaders({ resolution, authoritative: false, now, freshness });
  await sendMade(req, res, { ...plain, headers }, plain.made);
  if (isPlainHit({ req, context, resolution })) {
    const { raw: target } = context.target;
    prepareResponse(prepared, { target, handle, entry: resolution.entry, ...plain });
  }
  return true;
}

/** Reports the response as stale if one of its records is stale. */
function reportStale({ context, redirects, query, earliest }: FoundRecord): void {
  if (earliest.stale === undefined) return;
  redirects.host.metrics.countStale(earliest.stale);
  context.result = resultOf(earliest, query);
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
  const { redirects, resolution } = found;
  const isMissing = resolution.entry.kind === 'not-found';
  const failure =
    started.find((each) => each.failure)?.failure ??
    (isMissing ? notFoundError(handle, found.handle.text) : undefined);
  if (failure === undefined) return false;
  const earliest = started.flatMap(({ record = [] }) => record).reduce(earlierOf, found.earliest);
  reportStale({ ...found, earliest });
  const headers = headersOf({ ...found, earliest }, redirects.redirectFreshness);
  const contact = started.find((each) => each.contact !== undefined)?.contact;
  await sendRedirectProblem(found, failure, { handle, contact, headers });
  return true;
}

/** Finds the target by plugins; without a result, the URL values decide. */
async function findingOf(
  { values, resolution }: FoundRecord,
  started: readonly StartedRequest[],
): Promise<Finding> {
  for (const each of started) {
    const finding = await each.find?.(resolution);
    if (finding !== undefined) return finding;
  }
  return { result: plainTarget(values), used: [], isOfRecordAlone: true, isComplete: true };
}

function headersOf(
  { query, earliest, redirects }: FoundRecord,
  freshness: Freshness,
): Record<string, string> {
  const { authoritative } = query;
  return cacheHeaders({ resolution: earliest, authoritative, now: redirects.host.clock.now(), freshness });
}

async function respondWith(request: ResolvedRequest): Promise<void> {
  const { req, query, finding, redirects } = request;
  const { result } = finding;
  if ('text' in result) {
    await sendLocations(request, result);
    return;
  }
  const target = completeTarget(result, query, redirects.config.redirect);
  const links = await gatherLinks(request, target);
  const [linked] = links;
  const { url } = target;
  const { pages } = redirects.extensions;
  if (query.show === 'linkset' && linked !== undefined) await sendLinkset(request, linked);
  else if (query.show === 'redirect' && url?.ok === true) await redirect(request, { target, links }, url.url);
  else if (pages === undefined || prefersJson(req.headers.accept)) await sendRecord(request);
  else await sendRecordPage(request, { target, links }, pages);
}

/** The target of a record and the typed links of plugins. */
interface LinkedTarget {
  target: RedirectTarget;
  links: readonly RecordLinks[];
}

async function gatherLinks(request: ResolvedRequest, target: RedirectTarget): Promise<RecordLinks[]> {
  const { handle, query, resolution, run } = request;
  const { readLinks } = request.redirects.extensions;
  const all: RecordLinks[] = [];
  if (readLinks.length === 0) return all;
  const { length } = resolution.entry.values;
  const values = await run(selectedValues(resolution.entry, query), length);
  const to = target.url?.ok === true ? target.url.url : undefined;
  const record = { handle: handle.text, target: to, headers: target.headers };
  for (const read of readLinks) all.push(await run(read(values, record), length));
  return all;
}

async function sendLinkset(request: ResolvedRequest, links: RecordLinks): Promise<void> {
  const { req, redirects, query } = request;
  const contentType = linksetType(query, req.headers.accept);
  await sendCompressible(request, {
    contentType,
    text: links.linkset(contentType),
    headers: { ...pageHeaders(request), ...redirects.securityHeaders },
    varies: query.linksetFormat === undefined ? ['Accept'] : [],
  });
}

/** Returns headers that make clients revalidate pages and link sets before reuse. */
const pageHeaders = (request: FoundRecord): Record<string, string> => ({
  ...headersOf(request, request.redirects.freshness),
  'Cache-Control': 'no-cache',
});

/** Redirects an alias permanently to this proxy's URL for the last handle; returns false if none was sent. */
async function sendAlias(request: FoundRecord): Promise<boolean> {
  const { req, res, context, handle, aliases, redirects } = request;
  if (request.query.show !== 'redirect' || aliases.length === 0 || req.method === 'POST') return false;
  reportStale(request);
  const { query } = context.target;
  const path = `/${handleToPath(handle.text)}`;
  // Node decodes raw bytes as Latin-1; RFC 3986 requires them to be escaped.
  const url = query === '' ? path : `${path}?${escapeUnsafe(Buffer.from(query, 'latin1').toString())}`;
  const headers = headersOf(request, redirects.redirectFreshness);
  const status = request.query.isDry ? 200 : 301;
  await sendMade(req, res, { status, headers }, representRedirect(url));
  return true;
}

async function redirect(
  request: ResolvedRequest,
  { target, links }: LinkedTarget,
  url: string,
): Promise<void> {
  const { req, res } = request;
  const { isRandom, variation } = target;
  const headers = redirectHeaders(request);
  // Allows only the client to cache a random or address-based choice; a shared cache would serve it to all.
  if (isRandom || variation.isByAddress) {
    headers['Cache-Control'] = privateOnly(headers['Cache-Control'] ?? '');
  }
  const status = statusFor(request, target);
  const lines = combineHeaderLines([...target.headers, ...links.flatMap((each) => each.onRedirect())]);
  const made = representRedirect(url, lines, variation.headers, linesOfRecord(request, target));
  await sendMade(req, res, { status, headers }, made);
  if (isPlainHit(request) && dependsOnEntryOnly(request, target) && isPreparableStatus(status)) {
    prepareRedirect(request, status, made);
  }
}

/** Returns header lines of plugins for a redirect that depends only on its record and on that of its prefix. */
function linesOfRecord(request: ResolvedRequest, target: RedirectTarget): readonly string[] {
  const { redirects, handle, aliases, resolution } = request;
  const { host, extensions } = redirects;
  if (aliases.length > 0 || !dependsOnEntryOnly(request, target)) return [];
  const lines = recordLines(host, resolution, () => [handle, prefixRecordOf(handle)]);
  const { dependencyOf = () => true } = extensions;
  return lines.length > 0 && dependencyOf(handle, host.clock.now()) !== undefined ? lines : [];
}

/** Prepares the redirect for later requests. */
function prepareRedirect(
  { context, redirects: { host, extensions, prepared }, handle, resolution }: ResolvedRequest,
  status: number,
  made: Representation,
): void {
  const { dependencyOf } = extensions;
  const dependency = dependencyOf?.(handle, host.clock.now());
  if (dependencyOf !== undefined && dependency === undefined) return;
  const { entry } = resolution;
  const { raw: target } = context.target;
  prepareResponse(prepared, { target, handle, entry, status, made, dependency });
}

function redirectHeaders(request: ResolvedRequest): Record<string, string> {
  const headers = headersOf(request, request.redirects.redirectFreshness);
  // An invalid `Expires` counts as past (RFC 9111 section 5.3).
  return request.finding.isComplete ? headers : { ...headers, 'Cache-Control': 'no-store', Expires: '0' };
}

/** Replaces 303, 307 and 308, which HTTP/1.0 lacks, with 302 (RFC 9110 section 15.4). */
function statusFor({ req, query }: ResolvedRequest, { status }: RedirectTarget): number {
  if (query.isDry) return 200;
  return req.httpVersion === '1.0' && status > 302 ? 302 : status;
}

/** Prepared responses recognise only these redirect statuses. */
const isPreparableStatus = (status: number): boolean => status === 301 || status === 302;

const isPlainHit = ({ req, context, resolution }: PlainRequest): boolean =>
  req.method !== 'POST' && context.result === 'hit' && resolution.from === 'memory';

interface PlainRequest {
  req: IncomingMessage;
  context: RequestContext;
  resolution: FromEntry;
}

const dependsOnEntryOnly = (
  { finding }: ResolvedRequest,
  { isRandom, variation, status }: RedirectTarget,
): boolean =>
  finding.isOfRecordAlone &&
  !isRandom &&
  !variation.isByAddress &&
  variation.headers.length === 0 &&
  status <= 302;

async function sendRecordPage(
  request: ResolvedRequest,
  { target, links }: LinkedTarget,
  pages: Pages,
): Promise<void> {
  const { redirects, query, handle, aliases, resolution, run } = request;
  const { authoritative } = query;
  const { entry } = resolution;
  const values = await run(selectedValues(entry, query), entry.values.length);
  const { clock } = redirects.host;
  const shown = { handle: handle.text, aliases, values, target, resolution, authoritative };
  const making = pages.record({ ...shown, now: clock.now(), wallTime: clock.wall() });
  const text = await run(making, entry.values.length);
  const lines = combineHeaderLines(links.flatMap((each) => each.onPage()));
  const headers = { ...redirects.securityHeaders, ...pageHeaders(request), ...Object.fromEntries(lines) };
  await sendCompressible(request, { contentType: HTML_TYPE, text, headers, varies: ['Accept'] });
}

async function sendRecord(request: ResolvedRequest): Promise<void> {
  const { context, redirects, query, handle, resolution, run } = request;
  const headers = headersOf(request, redirects.freshness);
  const { entry } = resolution;
  const { status, json } = await run(bodyOfEntry(entry, handle.text, query), entry.values.length);
  const rendered = await run(renderText(json, context.format), json.length);
  await sendCompressible(request, { status, ...rendered, headers, varies: ['Accept'] });
}

async function sendLocations(
  request: ResolvedRequest,
  response: { contentType: string; text: string },
): Promise<void> {
  const headers = { ...redirectHeaders(request), ...request.redirects.securityHeaders };
  await sendCompressible(request, { ...response, headers });
}

/** Maximum length of a record that is parsed for a plain redirect; longer records are parsed in slices. */
const MAX_PLAIN_CHARS = 16 * 1024;

interface PlainRecord {
  handle: HandleRef;
  resolution: FromEntry;
  values: ParsedValues;
}

/**
 * Makes the redirect for a request without parameters by the record's URL values, which nearly all need. Returns
 * undefined if the prefix may affect the result.
 */
function plainRedirect(
  redirects: Redirects,
  { handle, resolution, values }: PlainRecord,
  url: string,
  now: number,
) {
  const { dependencyOf, readLinks } = redirects.extensions;
  const dependency = dependencyOf?.(handle, now);
  if (dependencyOf !== undefined && dependency === undefined) return undefined;
  const record = { handle: handle.text, target: url, headers: [] };
  const lines = combineHeaderLines(readLinks.flatMap((read) => runToEnd(read(values, record)).onRedirect()));
  const ofRecord = recordLines(redirects.host, resolution, () => [handle, prefixRecordOf(handle)]);
  return { status: 302, made: representRedirect(url, lines, [], ofRecord), dependency };
}

/**
 * Synchronously finds the redirect URL in the record's URL values. Returns it with all values; undefined if there is
 * none, or if an alias, a list or request headers may affect the result.
 */
function findUrl(
  entry: Entry,
  { config, values: { mayMatter }, extensions: { patterns } }: Redirects,
): { to: RedirectUrl; values: ParsedValues } | undefined {
  const { kind, values: text } = entry;
  if (kind !== 'found' || text.length > MAX_PLAIN_CHARS) return undefined;
  // A matching record is not parsed here. The patterns only save time: the types decide.
  if (patterns.some((pattern) => pattern.test(text))) return undefined;
  const values = valuesOf(entry);
  const relevant = values.filter(mayMatter);
  if (!relevant.every((value) => isFamily(value, 'URL') || isOfType(value, '0.TYPE/URL'))) return undefined;
  const { chosen } = plainTarget(relevant);
  return chosen && { to: toRedirectUrl(chosen.text, config.redirect), values };
}

/**
 * Represents a redirect, with a link to the target in the body, as RFC 9110 §15.4 recommends. `lines`: additional
 * headers; `varies`: request headers that affect the URL.
 */
function representRedirect(
  url: string,
  lines: readonly HeaderLine[] = [],
  varies: readonly string[] = [],
  ofRecord: readonly string[] = [],
): Representation {
  const link = escapeText(url);
  const body = toBytes(`<!doctype html><title>Handle Redirect</title><a href="${link}">${link}</a>\n`);
  return {
    encoding: 'identity',
    isWorthGzip: false,
    body,
    etag: undefined,
    common: linesOf(['Vary', varyOf(varies), 'Location', url, ...lines.flat(), ...ofRecord]),
    ofBody: linesOf(['Content-Type', HTML_TYPE, 'Content-Length', String(body.length)]),
  };
}
