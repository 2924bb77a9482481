// Handles the redirect interface: front page, handles, `/robots.txt` and `/favicon.ico`.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Host } from '../host.js';
import type { Config } from '../config/schema.js';
import { ServiceError } from '../errors.js';
import { handleInUrl, handleToPath } from '../handle/handle.js';
import { HTML_TYPE, securityHeaders } from '../html/html.js';
import { ICON } from '../html/style.js';
import { freshnessRules } from '../http/cache-headers.js';
import type { Admit, RequestContext } from '../http/context.js';
import type { RefusalOfHandle, RenderError } from '../http/error-reply.js';
import { forbidSniffing } from '../http/raw-response.js';
import { createAnswerRecord } from '../http/record-reply.js';
import { sendText } from '../http/reply.js';
import { type WithBody, createWithBody, decompress } from '../http/request-body.js';
import { defineRoutes } from '../http/route-table.js';
import { readHandle, readParameters } from '../http/target.js';
import { type Redirects, createRenderError } from './call.js';
import { joinExtensions } from './extension.js';
import { NO_PARAMETERS, readRedirectParameters, readRedirectQuery } from './request.js';
import { respondToHandle } from './respond.js';
import { createRedirectValues } from './values.js';

export const redirectRoutes = defineRoutes(
  { interface: 'redirect' },
  {
    'GET /': { id: 'lookUp', handler: 'redirect' },
    'POST /': { id: 'postToFrontPage', handler: 'redirect' },
    'GET /{handle}': { id: 'redirectHandle', handler: 'redirect', admitsMisses: true },
    'POST /{handle}': { id: 'redirectHandleByPost', handler: 'redirect' },
    'GET /robots.txt': 'robots',
    'GET /favicon.ico': 'icon',
  },
);

/** Handles a request that already has a context. */
type RedirectHandler = (req: IncomingMessage, res: ServerResponse, context: RequestContext) => Promise<void>;

interface RedirectInterface {
  handlers: Readonly<Record<string, RedirectHandler>>;
  /** Renders the errors of all paths outside the APIs. */
  renderError: RenderError;
}

const MAX_FORM_BYTES = 16 * 1024;

export function createRedirect(
  config: Config,
  host: Host,
  admit: Admit,
  refusalOfHandle: RefusalOfHandle | undefined,
): RedirectInterface {
  const extensions = joinExtensions(host.hooks.redirect.map((create) => create(config)));
  const { pages } = extensions;
  const redirects: Redirects = {
    config,
    host,
    admit,
    extensions,
    ...freshnessRules(config, host),
    values: createRedirectValues(extensions.types),
    answerRecord: createAnswerRecord(config, host),
    prepared: host.preparedCache(),
    securityHeaders: pages?.securityHeaders ?? securityHeaders({}),
  };
  const sendFile =
    (contentType: string, text: string): RedirectHandler =>
    (req, res) => {
      const headers = { ...redirects.securityHeaders, ...redirects.redirectFreshness(Infinity) };
      return sendText(req, res, { contentType, text, headers, gzipMinBytes: config.http.gzipMinBytes });
    };
  const handlers: Record<string, RedirectHandler> = {
    redirect: createRoute(redirects, refusalOfHandle, pages && sendFile(HTML_TYPE, pages.front)),
    robots: sendFile('text/plain', ROBOTS),
    icon: sendFile('image/svg+xml', ICON),
  };
  return { handlers, renderError: createRenderError(redirects) };
}

function createRoute(
  redirects: Redirects,
  refusalOfHandle: RefusalOfHandle | undefined,
  sendFront: RedirectHandler | undefined,
): RedirectHandler {
  const { bodies, refOf } = redirects.host;
  const withBody = createWithBody(bodies, MAX_FORM_BYTES);
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
      // Applies the traffic rules again, because the request line lacks the handle, which is in the form.
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
      const parameters = formParameters(withoutFragment(target.query), await readForm(req, withBody));
      if (path === '/') return answerFront(req, res, { context, parameters });
      query = readRedirectQuery(parameters);
    }
    const handle = refOf(parseHandleInUrl(path.slice(1)));
    return respondToHandle(redirects, req, res, { context, handle, query });
  };
}

/** Equals HDLProxy's file (recording "page: /robots.txt"). */
const ROBOTS = 'User-agent: *\nCrawl-delay: 1\nRequest-rate: 1/1\n';

/** Drops a fragment, which only broken clients send (recording "more: # in the request line"). */
const withoutFragment = (text: string): string => text.split('#', 1)[0] ?? '';

/** Decodes `+` as a space in posted forms and in `hdl`, and keeps it in other query parameters. */
function formParameters(query: string, form: string): URLSearchParams {
  const parameters = readRedirectParameters(query);
  const handle = readParameters(query).get('hdl');
  if (handle !== null) parameters.set('hdl', handle);
  for (const [name, value] of readParameters(form)) parameters.append(name, value);
  return parameters;
}

const FORM = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;

/**
 * Ignores the body of a GET, whose response may be cached for other clients, and any `charset`, because forms
 * are always UTF-8 (URL Standard, section 5).
 */
function readForm(req: IncomingMessage, withBody: WithBody): string | Promise<string> {
  if (req.method !== 'POST' || !FORM.test(req.headers['content-type'] ?? '')) return '';
  return withBody(req, async (body, memory) =>
    new TextDecoder().decode(await decompress(req, body, memory, FORM_RULES)),
  );
}

const FORM_RULES = {
  maxBodyBytes: MAX_FORM_BYTES,
  codes: { invalid: 'BAD_REQUEST', encoding: 'BAD_REQUEST' },
} as const;

/**
 * Redirects the form's GET to the handle's own URL, which readers can share. HDLProxy's form posts `hdl=`
 * instead.
 */
function redirectToHandle(res: ServerResponse, handle: string, parameters: URLSearchParams): void {
  parameters.delete('hdl');
  const pairs = [...parameters].map((pair) => pair.map(encodeURIComponent).join('='));
  const query = pairs.length === 0 ? '' : `?${pairs.join('&')}`;
  res.setHeader('Cache-Control', 'no-store');
  res.setHeader('Location', `/${handleToPath(handle)}${query}`);
  forbidSniffing(res);
  res.statusCode = 302;
  res.end();
}

/** @throws ServiceError if the percent-encoded path is not a handle */
function parseHandleInUrl(rawPath: string): string {
  const handle = handleInUrl(readHandle(rawPath));
  if (handle === '') throw new ServiceError('EMPTY_HANDLE');
  return handle;
}
