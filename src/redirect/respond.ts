// Responses that depend on more than URL values (aliases, plugins, parameters): redirect, page, JSON or plugin's text.
import { handleToPath } from '../handle/handle.js';
import { HTML_TYPE } from '../html/html.js';
import { privateOnly } from '../http/cache-headers.js';
import { noteRead, resultOf } from '../http/context.js';
import { type ReplyHead, renderRecord, sendMade } from '../http/reply.js';
import type { FromEntry } from '../resolver/resolution.js';
import { type ResolvedHandle, earlierOf, followAliases } from './aliases.js';
import {
  type RedirectCall,
  cacheHead,
  notFoundError,
  refusedError,
  representRedirect,
  sendCompressible,
  sendRedirect,
  sendRedirectProblem,
} from './call.js';
import type {
  Finding,
  Pages,
  RecordLinks,
  RedirectRequest,
  RedirectTarget,
  StartedRequest,
} from './extension.js';
import { combineHeaderLines } from './link-header.js';
import { linksetType, prefersJson } from './request.js';
import { completeTarget, escapeUnsafe, plainTarget } from './target.js';
import { selectedValues } from './values.js';

/** A request with the record at the end of its alias chain. */
interface FoundRecord extends RedirectCall, RedirectRequest {
  aliases: readonly string[];
  /** The record that expires first, and so bounds the lifetime of the response. */
  earliest: FromEntry;
}

/** A request with its target. */
interface ResolvedRequest extends FoundRecord {
  finding: Finding;
}

export async function respondToRecord(call: RedirectCall, first: ResolvedHandle): Promise<void> {
  const { context, redirects, query } = call;
  noteRead(context, first.resolution, query);
  const { end, ...chain } = await followAliases(first, call);
  const { handle, resolution } = end;
  if (resolution.kind === 'refused') {
    const failure = refusedError(handle.text, resolution.refused);
    return sendRedirectProblem(call, failure, { handle: handle.text });
  }
  const found = { ...call, ...chain, handle, resolution, earliest: chain.earliest ?? resolution };
  const started: StartedRequest[] = [];
  for (const start of redirects.extensions.startRequest) started.push(await start(found));
  if (await sendMissing(found, first.handle.text, started)) return;
  if (await sendAlias(found)) return;
  const finding = await findingOf(found, started);
  const request = { ...found, finding, earliest: finding.used.reduce(earlierOf, found.earliest) };
  reportStale(request);
  await respondWith(request);
}

/** Reports the response as stale if one of its records is stale. */
function reportStale({ context, redirects, query, earliest }: FoundRecord): void {
  if (earliest.stale === undefined) return;
  redirects.host.metrics.countStale(earliest.stale);
  context.result = resultOf(earliest, query);
}

/** Sends the error for a missing handle, or that of a plugin; otherwise returns false. `handle`: as requested. */
async function sendMissing(
  found: FoundRecord,
  handle: string,
  started: readonly StartedRequest[],
): Promise<boolean> {
  const isMissing = found.resolution.entry.kind === 'not-found';
  const failure =
    started.find((each) => each.failure)?.failure ??
    (isMissing ? notFoundError(handle, found.handle.text) : undefined);
  if (failure === undefined) return false;
  const earliest = started.flatMap(({ record = [] }) => record).reduce(earlierOf, found.earliest);
  reportStale({ ...found, earliest });
  const contact = started.find((each) => each.contact !== undefined)?.contact;
  await sendRedirectProblem(found, failure, { handle, contact, headers: cacheHead(found, earliest).headers });
  return true;
}

/** Finds the target by plugins; without a result, the URL values decide. */
async function findingOf({ values }: FoundRecord, started: readonly StartedRequest[]): Promise<Finding> {
  for (const each of started) {
    const finding = await each.find?.();
    if (finding !== undefined) return finding;
  }
  return { result: plainTarget(values), used: [], isOfRecordAlone: true, isComplete: true };
}

/** Redirects an alias permanently to this proxy's URL for the last handle; returns false if none was sent. */
async function sendAlias(request: FoundRecord): Promise<boolean> {
  const { req, res, context, handle, aliases, query, earliest } = request;
  if (query.show !== 'redirect' || aliases.length === 0 || req.method === 'POST') return false;
  reportStale(request);
  const path = `/${handleToPath(handle.text)}`;
  const { query: given } = context.target;
  // Node decodes raw bytes as Latin-1; RFC 3986 requires them to be escaped.
  const url = given === '' ? path : `${path}?${escapeUnsafe(Buffer.from(given, 'latin1').toString())}`;
  const status = query.isDry ? 200 : 301;
  await sendMade(req, res, cacheHead(request, earliest), representRedirect({ status, url }));
  return true;
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
  const [linkset] = links.flatMap((each) => each.linkset ?? []);
  const { url } = target;
  const { pages } = redirects.extensions;
  if (query.show === 'linkset' && linkset !== undefined) await sendLinkset(request, linkset);
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
  const { context, handle, query, resolution } = request;
  const { readLinks } = request.redirects.extensions;
  const all: RecordLinks[] = [];
  if (readLinks.length === 0) return all;
  const { length } = resolution.entry.values;
  const values = await selectedValues(resolution.entry, query, context.runSteps);
  const to = target.url?.ok === true ? target.url.url : undefined;
  const record = { handle: handle.text, target: to, headers: target.headers };
  for (const read of readLinks) all.push(await context.runSteps(read(values, record), length));
  return all;
}

async function sendLinkset(
  request: ResolvedRequest,
  write: NonNullable<RecordLinks['linkset']>,
): Promise<void> {
  const { req, redirects, query } = request;
  const contentType = linksetType(query, req.headers.accept);
  await sendCompressible(request, {
    status: 200,
    contentType,
    text: write(contentType),
    headers: { ...pageHeaders(request), ...redirects.securityHeaders },
    varies: query.linksetFormat === undefined ? ['Accept'] : [],
  });
}

/** Returns headers that make clients revalidate pages and link sets before reuse. */
const pageHeaders = (request: FoundRecord): Record<string, string> => ({
  ...cacheHead(request, request.earliest, request.redirects.recordFreshness).headers,
  'Cache-Control': 'no-cache',
});

async function redirect(
  request: ResolvedRequest,
  { target, links }: LinkedTarget,
  url: string,
): Promise<void> {
  const { redirects, handle, aliases, resolution } = request;
  const { extensions } = redirects;
  const { isRandom, variation } = target;
  const { headers, now } = redirectHead(request);
  // Allows only the client to cache a random or address-based choice; a shared cache would serve it to all.
  if (isRandom || variation.isByAddress)
    headers['Cache-Control'] = privateOnly(headers['Cache-Control'] ?? '');
  await sendRedirect(request, {
    handle,
    resolution,
    status: statusFor(request, target),
    url,
    headers,
    now,
    lines: [...target.headers, ...links.flatMap((each) => each.onRedirect())],
    varies: variation.headers,
    dependencyOf:
      aliases.length === 0 && dependsOnEntryOnly(request, target)
        ? () => extensions.dependencyOf(handle, now)
        : undefined,
  });
}

function redirectHead(request: ResolvedRequest): Required<ReplyHead> {
  const head = cacheHead(request, request.earliest);
  if (request.finding.isComplete) return head;
  // An invalid `Expires` counts as past (RFC 9111 section 5.3).
  return { ...head, headers: { ...head.headers, 'Cache-Control': 'no-store', Expires: '0' } };
}

/** Replaces 303, 307 and 308, which HTTP/1.0 lacks, with 302 (RFC 9110 section 15.4). */
function statusFor({ req, query }: ResolvedRequest, { status }: RedirectTarget): number {
  if (query.isDry) return 200;
  return req.httpVersion === '1.0' && status > 302 ? 302 : status;
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
  const { context, redirects, query, handle, aliases, resolution } = request;
  const { authoritative } = query;
  const { entry } = resolution;
  const values = await selectedValues(entry, query, context.runSteps);
  const { clock } = redirects.host;
  const shown = { handle: handle.text, aliases, values, target, resolution, authoritative };
  const making = pages.record({ ...shown, now: clock.now(), wallTime: clock.wall() });
  const text = await context.runSteps(making, entry.values.length);
  const lines = combineHeaderLines(links.flatMap((each) => each.onPage?.() ?? []));
  const headers = { ...redirects.securityHeaders, ...pageHeaders(request), ...Object.fromEntries(lines) };
  await sendCompressible(request, { status: 200, contentType: HTML_TYPE, text, headers, varies: ['Accept'] });
}

async function sendRecord(request: ResolvedRequest): Promise<void> {
  const { context, redirects, query, handle, resolution } = request;
  const { headers } = cacheHead(request, request.earliest, redirects.recordFreshness);
  const { entry } = resolution;
  const form = { handle: handle.text, selection: query, format: context.format };
  const rendered = await context.runSteps(renderRecord(entry, form), entry.values.length);
  await sendCompressible(request, { ...rendered, headers, varies: ['Accept'] });
}

async function sendLocations(
  request: ResolvedRequest,
  response: { contentType: string; text: string },
): Promise<void> {
  const headers = { ...redirectHead(request).headers, ...request.redirects.securityHeaders };
  await sendCompressible(request, { status: 200, ...response, headers });
}
