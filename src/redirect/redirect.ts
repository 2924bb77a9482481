// Redirect interface: front page, `/robots.txt`, `/favicon.ico`, redirects by a URL value alone (others: `respond.ts`).
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Host } from '../host.js';
import type { Entry } from '../cache/entry.js';
import type { Config } from '../config/schema.js';
import { ServiceError } from '../errors.js';
import { type HandleRef, handleInUrl, readHandle } from '../handle/handle.js';
import { HTML_TYPE, securityHeaders } from '../html/html.js';
import { ICON } from '../html/style.js';
import { cacheHeaders, recordFreshness, redirectFreshness } from '../http/cache-headers.js';
import { type Admit, type Handler, type RequestContext, noteRead } from '../http/context.js';
import type { RefusalOfHandle } from '../http/error-reply.js';
import { createAnswerRecord } from '../http/record-reply.js';
import { sendText } from '../http/reply.js';
import { defineRoutes } from '../http/route-table.js';
import { type ParsedValues, valuesOf } from '../resolver/parsed-records.js';
import { SMALL_CHARS, runToEnd } from '../time-slicer.js';
import type { ResolvedHandle } from './aliases.js';
import { type RedirectCall, type Redirects, createRenderError, sendRedirect } from './call.js';
import { joinExtensions } from './extension.js';
import { createReadAllParameters, redirectToHandle } from './form.js';
import { NO_PARAMETERS, type RedirectQuery, readRedirectQuery } from './request.js';
import { respondToRecord } from './respond.js';
import { plainTarget, toRedirectUrl } from './target.js';
import { createRedirectValues, isUrlFamily } from './values.js';

export const redirectRoutes = defineRoutes(
  { interface: 'redirect', isRead: true },
  {
    'GET /': { id: 'lookUp', handler: 'redirect' },
    'POST /': { id: 'postToFrontPage', handler: 'redirect' },
    'GET /{handle}': { id: 'redirectHandle', handler: 'redirect', admitsMisses: true },
    'POST /{handle}': { id: 'redirectHandleByPost', handler: 'redirect' },
    'GET /robots.txt': 'robots',
    'GET /favicon.ico': 'icon',
  },
);

/** Equals HDLProxy's file (recording "page: /robots.txt"). */
const ROBOTS = 'User-agent: *\nCrawl-delay: 1\nRequest-rate: 1/1\n';

/** Creates the handlers, and the renderer of the errors of all paths outside the APIs. */
export function createRedirect(
  config: Config,
  host: Host,
  admit: Admit,
  refusalOfHandle: RefusalOfHandle | undefined,
) {
  const extensions = joinExtensions(host.hooks.redirect.map((create) => create(config)));
  const { pages } = extensions;
  const redirects: Redirects = {
    config,
    host,
    admit,
    extensions,
    recordFreshness: recordFreshness(config),
    redirectFreshness: redirectFreshness(config, host.clock),
    values: createRedirectValues(extensions.types),
    answerRecord: createAnswerRecord(config, host),
    prepared: host.preparedCache.current,
    securityHeaders: pages?.securityHeaders ?? securityHeaders({}),
  };
  const sendFile =
    (contentType: string, text: string): Handler =>
    (req, res) => {
      const headers = { ...redirects.securityHeaders, ...redirects.redirectFreshness(Infinity) };
      const { gzipMinBytes } = config.http;
      return sendText(req, res, { status: 200, contentType, text, headers, gzipMinBytes });
    };
  const handlers: Record<string, Handler> = {
    redirect: createRoute(redirects, refusalOfHandle, pages && sendFile(HTML_TYPE, pages.front)),
    robots: sendFile('text/plain', ROBOTS),
    icon: sendFile('image/svg+xml', ICON),
  };
  return { handlers, renderError: createRenderError(redirects) };
}

function createRoute(
  redirects: Redirects,
  refusalOfHandle: RefusalOfHandle | undefined,
  sendFront: Handler | undefined,
): Handler {
  const { bodies, refOf } = redirects.host;
  const readAllParameters = createReadAllParameters(bodies);
  async function answerFront(
    req: IncomingMessage,
    res: ServerResponse,
    { context, parameters }: { context: RequestContext; parameters: URLSearchParams },
  ): Promise<void> {
    const text = handleInUrl(parameters.get('hdl') ?? '');
    if (text === '') {
      if (sendFront === undefined) throw new ServiceError('EMPTY_HANDLE');
      await sendFront(req, res, context);
    } else if (req.method !== 'POST') redirectToHandle(res, text, parameters);
    else {
      const handle = refOf(parseHandleInUrl(encodeURIComponent(text)));
      // Judges the request again, because the request line lacks the handle, which is in the form.
      const refusal = await refusalOfHandle?.(req, handle);
      if (refusal !== undefined) throw refusal;
      await respondToHandle(redirects, req, res, { context, handle, query: readRedirectQuery(parameters) });
    }
  }

  return async function redirectRoute(req, res, context) {
    const { target } = context;
    const path = withoutFragment(target.path);
    let query = NO_PARAMETERS;
    if (path === '/' || target.query !== '' || req.method === 'POST') {
      const parameters = await readAllParameters(req, withoutFragment(target.query));
      if (path === '/') return answerFront(req, res, { context, parameters });
      query = readRedirectQuery(parameters);
    }
    const handle = refOf(parseHandleInUrl(path.slice(1)));
    return respondToHandle(redirects, req, res, { context, handle, query });
  };
}

/** Drops a fragment, which only broken clients send (recording "more: # in the request line"). */
const withoutFragment = (text: string): string => text.split('#', 1)[0] ?? '';

/** @throws ServiceError if the percent-encoded path is not a handle */
function parseHandleInUrl(rawPath: string): string {
  const handle = handleInUrl(readHandle(rawPath));
  if (handle === '') throw new ServiceError('EMPTY_HANDLE');
  return handle;
}

async function respondToHandle(
  redirects: Redirects,
  req: IncomingMessage,
  res: ServerResponse,
  { context, handle, query }: { context: RequestContext; handle: HandleRef; query: RedirectQuery },
): Promise<void> {
  const { resolver } = redirects.host;
  const { authoritative } = query;
  const { onlyIfCached } = context;
  const call = { req, res, context, redirects, query };
  context.handle = handle;
  const admit = redirects.admit.bind(undefined, req, res, context);
  // An anonymous GET without parameters is admitted only if it may need more than memory.
  if (query !== NO_PARAMETERS || req.method === 'POST' || req.headers.authorization !== undefined)
    await admit();
  const read = { authoritative, onlyIfCached, admit, client: context.client.network };
  const first = { handle, resolution: await resolver.read(handle, read) };
  if (await sendPlain(call, first)) return;
  if (context.caller === undefined) await admit();
  if (query.show === 'api') await redirects.answerRecord(req, res, context, { ...first, query });
  else await respondToRecord(call, first);
}

/** Sends a redirect that depends only on the record's URL values; returns false if there is none. */
async function sendPlain(call: RedirectCall, { handle, resolution }: ResolvedHandle): Promise<boolean> {
  const { context, redirects, query } = call;
  if (query !== NO_PARAMETERS || resolution.kind !== 'entry' || resolution.stale !== undefined) return false;
  const found = findUrl(resolution.entry, redirects);
  if (found === undefined) return false;
  const { extensions, redirectFreshness: freshness } = redirects;
  const now = resolution.readAt;
  const dependency = extensions.dependencyOf(handle, now);
  if (dependency === undefined) return false;
  noteRead(context, resolution, query);
  const record = { handle: handle.text, target: found.url, headers: [] };
  await sendRedirect(call, {
    handle,
    resolution,
    status: 302,
    url: found.url,
    headers: cacheHeaders({ resolution, authoritative: false, now, freshness }),
    now,
    lines: extensions.readLinks.flatMap((read) => runToEnd(read(found.values, record)).onRedirect()),
    varies: [],
    dependencyOf: () => dependency,
  });
  return true;
}

/**
 * Synchronously finds the redirect URL in the record's URL values. Returns it with all values; undefined if there is
 * none, or if an alias, a list or request headers may affect the result.
 */
function findUrl(
  entry: Entry,
  { config, values: { mayMatter }, extensions: { patterns } }: Redirects,
): { url: string; values: ParsedValues } | undefined {
  const { kind, values: text } = entry;
  if (kind !== 'found' || text.length > SMALL_CHARS) return undefined;
  // A matching record is not parsed here. The patterns only save time: the types decide.
  if (patterns.some((pattern) => pattern.test(text))) return undefined;
  const values = valuesOf(entry);
  const relevant = values.filter(mayMatter);
  if (!relevant.every(isUrlFamily)) return undefined;
  const { chosen } = plainTarget(relevant);
  const to = chosen && toRedirectUrl(chosen.text, config.redirect);
  return to?.ok === true ? { url: to.url, values } : undefined;
}
