// Handles the redirect interface: front page, handles, `/robots.txt` and `/favicon.ico`.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { ServiceError } from '../errors.js';
import { handleInUrl, handleToPath } from '../handle/handle.js';
import { HTML_TYPE } from '../html/send.js';
import { ICON } from '../html/style.js';
import { freshnessRules } from '../http/cache-headers.js';
import { contextOf } from '../http/context.js';
import type { RenderError, RefusalOfHandle } from '../http/error-reply.js';
import { forbidSniffing } from '../http/raw-response.js';
import { type MemoryBudget, type WithBody, createWithBody, decompress } from '../http/request-body.js';
import { defineRoutes } from '../http/route-table.js';
import { readParameters, readHandle } from '../http/target.js';
import type { Resolver } from '../resolver/resolver.js';
import { joinExtensions } from './extension.js';
import { NO_PARAMETERS, readRedirectParameters, readRedirectQuery } from './request.js';
import { type RespondDeps, respondToHandle } from './respond.js';
import { createRenderError, createSender } from './sender.js';
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

interface RedirectParts extends Pick<RespondDeps, 'prepared' | 'runStepsOf' | 'admit'> {
  resolver: Resolver;
  /** Memory budget for request bodies. */
  bodies: MemoryBudget;
  refusalOfHandle: RefusalOfHandle | undefined;
}

/** Handles a request that already has a context. */
type Handler = (req: IncomingMessage, res: ServerResponse) => Promise<void>;

interface RedirectInterface {
  handlers: Readonly<Record<string, Handler>>;
  /** Renders the errors of all paths outside the APIs. */
  renderError: RenderError;
}

const MAX_FORM_BYTES = 16 * 1024;

export function createRedirect(config: Config, context: Context, parts: RedirectParts): RedirectInterface {
  const deps = createRespondDeps(config, context, parts);
  const { sender } = deps;
  const { pages } = sender;
  const sendFile =
    (contentType: string, text: string): Handler =>
    (req, res) => {
      const freshness = deps.redirectFreshness(Infinity);
      const headers = { ...sender.securityHeaders, ...freshness };
      return sender.sendText(req, res, { contentType, text, headers });
    };
  const withBody = createWithBody({ maxBodyBytes: MAX_FORM_BYTES, budget: parts.bodies });
  const handlers: Record<string, Handler> = {
    redirect: createRoute(
      { ...deps, withBody, refusalOfHandle: parts.refusalOfHandle },
      pages && sendFile(HTML_TYPE, pages.front),
    ),
    robots: sendFile('text/plain', ROBOTS),
    icon: sendFile('image/svg+xml', ICON),
  };
  return { handlers, renderError: createRenderError(sender) };
}

function createRespondDeps(config: Config, context: Context, parts: RedirectParts): RespondDeps {
  const { resolver } = parts;
  const extensions = joinExtensions(context.hooks.redirect.map((create) => create(config)));
  return {
    ...parts,
    ...freshnessRules(config, context),
    context,
    refOf: resolver.refOf,
    extensions,
    sender: createSender(extensions.pages, config.http.gzipMinBytes),
    values: createRedirectValues(extensions.types),
    urls: config.redirect,
    gzipMinBytes: config.http.gzipMinBytes,
  };
}

function createRoute(
  deps: RespondDeps & Pick<RedirectParts, 'refusalOfHandle'> & { withBody: WithBody },
  sendFront: Handler | undefined,
): Handler {
  const { withBody, refusalOfHandle } = deps;
  async function answerFront(req: IncomingMessage, res: ServerResponse, parameters: URLSearchParams) {
    const text = handleInUrl(parameters.get('hdl') ?? '');
    if (text === '') {
      if (sendFront === undefined) throw new ServiceError('EMPTY_HANDLE');
      await sendFront(req, res);
    } else if (req.method !== 'POST') redirectToHandle(res, text, parameters);
    else {
      const handle = deps.refOf(parseHandleInUrl(encodeURIComponent(text)));
      // Applies the traffic rules again, because the request line lacks the handle, which is in the form.
      const refusal = await refusalOfHandle?.(req, handle);
      if (refusal !== undefined) throw refusal;
      await respondToHandle(req, res, { handle, query: readRedirectQuery(parameters), deps });
    }
  }

  return async function redirectRoute(req, res) {
    const { target } = contextOf(res);
    const path = withoutFragment(target.path);
    let query = NO_PARAMETERS;
    if (path === '/' || target.query !== '' || req.method === 'POST') {
      const parameters = parametersOf(withoutFragment(target.query), await readForm(req, withBody));
      if (path === '/') return answerFront(req, res, parameters);
      query = readRedirectQuery(parameters);
    }
    const handle = deps.refOf(parseHandleInUrl(path.slice(1)));
    return respondToHandle(req, res, { handle, query, deps });
  };
}

/** Equals HDLProxy's file (recording "page: /robots.txt"). */
const ROBOTS = 'User-agent: *\nCrawl-delay: 1\nRequest-rate: 1/1\n';

/** Drops a fragment, which only broken clients send (recording "more: # in the request line"). */
const withoutFragment = (text: string): string => text.split('#', 1)[0] ?? '';

/** Decodes `+` as a space in posted forms and in `hdl`, and keeps it in other query parameters. */
function parametersOf(query: string, form: string): URLSearchParams {
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
  const options = {
    encoding: req.headers['content-encoding'],
    maxBodyBytes: MAX_FORM_BYTES,
    codes: { invalid: 'BAD_REQUEST', encoding: 'BAD_REQUEST' },
  } as const;
  return withBody(req, async (body, memory) =>
    new TextDecoder().decode(await decompress(body, { ...options, memory })),
  );
}

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
