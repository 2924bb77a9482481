// Which address of a browser leads to what: the look-up field, a handle, or the little files of a site.
import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import { ServiceError } from '../errors.js';
import { handleToPath } from '../handle/handle.js';
import { contextOf } from '../http/context.js';
import { readParameters } from '../http/query.js';
import { readHandle } from '../record/resolve.js';
import { answerHandle } from './answer.js';
import type { RoomDeps } from './deps.js';
import { handleInUrl } from './handle-in-url.js';
import { layOut } from '../html/layout.js';
import { ICON } from '../html/style.js';
import { frontPage } from './plain-pages.js';
import { HTML_TYPE, sendText } from '../html/send-page.js';

const MAX_FORM = '16kb';
const FILES: Readonly<Record<string, { contentType: string; text: string }>> = {
  // What HDLProxy asks of crawlers (recording "page: /robots.txt").
  '/robots.txt': { contentType: 'text/plain', text: 'User-agent: *\nCrawl-delay: 1\nRequest-rate: 1/1\n' },
  '/favicon.ico': { contentType: 'image/svg+xml', text: ICON },
};

/** Answers every path that is not of an API. */
export function createRedirectRoutes(deps: RoomDeps): RequestHandler[] {
  return [
    refuseOtherMethods,
    express.text({ type: 'application/x-www-form-urlencoded', limit: MAX_FORM }),
    async function redirectRoute(req: Request, res: Response): Promise<void> {
      const { path, query } = contextOf(res).target;
      const parameters = readParameters([query, formOf(req)].filter((text) => text !== '').join('&'));
      const file = FILES[path];
      if (file !== undefined) await sendConstant(req, res, { ...file, deps });
      else if (path === '/') await answerRoot(req, res, { parameters, deps });
      else await answerHandle(req, res, { handle: readName(path.slice(1)), parameters, deps });
    },
  ];
}

function refuseOtherMethods(req: Request, res: Response, next: NextFunction): void {
  if (['GET', 'HEAD', 'POST'].includes(req.method)) {
    next();
    return;
  }
  res.setHeader('Allow', 'GET, HEAD, POST, OPTIONS');
  throw new ServiceError('METHOD_REFUSED', { detail: `${req.method}; write through /api/handles` });
}

/** @throws ServiceError when a percent-encoded text names no handle */
function readName(rawName: string): string {
  const handle = handleInUrl(readHandle(rawName));
  if (handle === '') throw new ServiceError('EMPTY_HANDLE');
  return handle;
}

/** A body means something in a POST only: what is answered to a GET is answered to others who ask the same. */
const formOf = ({ method, body }: Request): string =>
  method === 'POST' && typeof body === 'string' ? body : '';

/** HDLProxy's form posts `hdl=`; our own asks with GET, so that the answer has an address to share. */
async function answerRoot(
  req: Request,
  res: Response,
  { parameters, deps }: { parameters: URLSearchParams; deps: RoomDeps },
): Promise<void> {
  const handle = handleInUrl(parameters.get('hdl') ?? '');
  if (handle === '') {
    await sendConstant(req, res, { contentType: HTML_TYPE, text: layOut(frontPage, deps.house), deps });
  } else if (req.method === 'POST') {
    await answerHandle(req, res, { handle: readName(encodeURIComponent(handle)), parameters, deps });
  } else {
    parameters.delete('hdl');
    const query = parameters.size === 0 ? '' : `?${parameters.toString()}`;
    res.setHeader('Cache-Control', 'no-store');
    res
      .status(302)
      .setHeader('Location', `/${handleToPath(handle)}${query}`)
      .end();
  }
}

function sendConstant(
  req: Request,
  res: Response,
  { contentType, text, deps }: { contentType: string; text: string; deps: RoomDeps },
): Promise<void> {
  const maxAge = Math.floor(deps.clientMaxAgeMs / 1000);
  const headers = { ...deps.pageHeaders, 'Cache-Control': `public, max-age=${maxAge}` };
  const { gzipMinBytes } = deps;
  return sendText(req, res, { status: 200, contentType, text, headers, variesByAccept: false, gzipMinBytes });
}
