// Answers browsers: front page, handles, and the files of a site.
import type { ErrorRequestHandler, NextFunction, Request, RequestHandler, Response } from 'express';
import { ServiceError } from '../errors.js';
import { handleInUrl } from '../handle/handle-in-url.js';
import { handleToPath } from '../handle/handle.js';
import type { PageBranding } from '../html/layout.js';
import { HTML_TYPE, createPageSender } from '../html/send.js';
import { ICON } from '../html/style.js';
import { contextOf } from '../http/context.js';
import type { ReportUnexpected } from '../http/error-reply.js';
import type { RefusalOfHandle } from '../http/guard.js';
import { readParameters } from '../http/query.js';
import { type WithBody, decompress } from '../http/request-body.js';
import { readHandle } from '../http/target.js';
import { frontPage } from './front-page.js';
import { createRedirectErrorReply } from './problems.js';
import { readRedirectParameters } from './request.js';
import { type RespondDeps, respondToHandle } from './respond.js';
import { createLocationListParser } from './locations/location-list.js';

interface RedirectDeps extends Omit<RespondDeps, 'sender' | 'parseList'> {
  branding: PageBranding;
  /** Reads at most `MAX_FORM_BYTES`. */
  withBody: WithBody;
  refusalOfHandle: RefusalOfHandle | undefined;
  onUnexpected: ReportUnexpected;
}

export interface RedirectInterface {
  handlers: { redirect: RequestHandler; robots: RequestHandler; icon: RequestHandler };
  errorReply: ErrorRequestHandler;
}

export const MAX_FORM_BYTES = 16 * 1024;

export function createRedirect(deps: RedirectDeps): RedirectInterface {
  const { branding, gzipMinBytes, onUnexpected } = deps;
  const sender = createPageSender(branding, gzipMinBytes);
  const parseList = createLocationListParser();
  const sendFile =
    (contentType: string, text: string): RequestHandler =>
    (req, res) => {
      const headers = { ...sender.securityHeaders, ...deps.redirectFreshness(Infinity, deps.now()) };
      return sender.sendText(req, res, { contentType, text, headers });
    };
  return {
    handlers: {
      redirect: createRoute(
        { ...deps, parseList, sender },
        sendFile(HTML_TYPE, sender.renderPage(frontPage(branding))),
      ),
      robots: sendFile('text/plain', ROBOTS),
      icon: sendFile('image/svg+xml', ICON),
    },
    errorReply: createRedirectErrorReply({ sender, onUnexpected }),
  };
}

function createRoute(
  deps: RespondDeps & Pick<RedirectDeps, 'withBody' | 'refusalOfHandle'>,
  sendFront: RequestHandler,
): RequestHandler {
  const { withBody, refusalOfHandle } = deps;
  return async function redirectRoute(req: Request, res: Response, next: NextFunction): Promise<void> {
    const { target } = contextOf(res);
    const path = withoutFragment(target.path);
    const parameters = parametersOf(withoutFragment(target.query), await readForm(req, withBody));
    const formHandle = path === '/' ? handleInUrl(parameters.get('hdl') ?? '') : '';
    if (path === '/' && formHandle === '') await sendFront(req, res, next);
    else if (path === '/' && req.method !== 'POST') redirectToHandle(res, formHandle, parameters);
    else {
      const handle = parseHandleInUrl(path === '/' ? encodeURIComponent(formHandle) : path.slice(1));
      if (path === '/') await judgeForm(req, handle, refusalOfHandle);
      await respondToHandle(req, res, { handle, parameters, deps });
    }
  };
}

/** The handle of a form is not in the request line, where the traffic rules look. @throws ServiceError */
async function judgeForm(
  req: Request,
  handle: string,
  refusalOfHandle: RefusalOfHandle | undefined,
): Promise<void> {
  const refusal = await refusalOfHandle?.(req, handle);
  if (refusal !== undefined) throw refusal;
}

/** As on HDLProxy (recording "page: /robots.txt"). */
const ROBOTS = 'User-agent: *\nCrawl-delay: 1\nRequest-rate: 1/1\n';

/** A fragment is not sent by proper clients (recording "more: # in the request line"). */
const withoutFragment = (text: string): string => text.split('#', 1)[0] ?? '';

/** In a form, and in the query of our form, `+` is a space. */
function parametersOf(query: string, form: string): URLSearchParams {
  const parameters = readRedirectParameters(query);
  const handle = readParameters(query).get('hdl');
  if (handle !== null) parameters.set('hdl', handle);
  for (const [name, value] of readParameters(form)) parameters.append(name, value);
  return parameters;
}

const FORM = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;

/**
 * The body of a GET is ignored: its response may be stored for other clients. A `charset` is ignored too: this media type
 * is always UTF-8 (URL Standard, section 5).
 */
function readForm(req: Request, withBody: WithBody): string | Promise<string> {
  if (req.method !== 'POST' || !FORM.test(req.headers['content-type'] ?? '')) return '';
  const options = {
    encoding: req.headers['content-encoding'],
    maxBodyBytes: MAX_FORM_BYTES,
    codes: { invalid: 'BAD_REQUEST', encoding: 'BAD_REQUEST' },
  } as const;
  return withBody(req, async (body) => new TextDecoder().decode(await decompress(body, options)));
}

/** Our form uses GET, so that the result has a URL to share; HDLProxy's form posts `hdl=`. */
function redirectToHandle(res: Response, handle: string, parameters: URLSearchParams): void {
  parameters.delete('hdl');
  const pairs = [...parameters].map((pair) => pair.map(encodeURIComponent).join('='));
  const query = pairs.length === 0 ? '' : `?${pairs.join('&')}`;
  res.setHeader('Cache-Control', 'no-store');
  res
    .status(302)
    .setHeader('Location', `/${handleToPath(handle)}${query}`)
    .end();
}

/** @throws ServiceError when a percent-encoded path is not a handle */
function parseHandleInUrl(rawPath: string): string {
  const handle = handleInUrl(readHandle(rawPath));
  if (handle === '') throw new ServiceError('EMPTY_HANDLE');
  return handle;
}
