// Who may ask the admin listener: whoever knows the token; without one, whoever is on this machine.
import { createHash, timingSafeEqual } from 'node:crypto';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { sendProblem } from './problem.js';

export interface TokenDeps {
  /** None: the listener is to be reached from this machine only. */
  token: string | null;
  isLoopback: (host: string) => boolean;
}

/** Orchestrators ask these and have no place for a token; they say nothing but yes or no. */
const OPEN_PATHS: readonly string[] = ['/healthz', '/readyz'];

/** Stands before everything else of the admin listener. */
export function createTokenCheck({ token, isLoopback }: TokenDeps): RequestHandler {
  const isExpected = token === null ? undefined : secretEquals(token);
  return function checkToken(req: Request, res: Response, next: NextFunction): void {
    if (isProbe(req)) next();
    else if (isFromElsewhere(req, isExpected === undefined ? isLoopback : () => true)) {
      sendProblem(res, 'ADMIN_FOREIGN', 'it was sent by a page of another place, or to another name');
    } else if (isExpected === undefined || isExpected(givenToken(req))) next();
    else {
      // One line each: browsers pass over a line that begins with a scheme they do not know.
      res.set('WWW-Authenticate', ['Basic realm="admin"', 'Bearer realm="admin"']);
      sendProblem(res, 'ADMIN_TOKEN_NEEDED', 'send "Authorization: Bearer <admin.token>"');
    }
  };
}

const isProbe = ({ method, path }: Request): boolean =>
  (method === 'GET' || method === 'HEAD') && OPEN_PATHS.includes(path);

/**
 * A browser on this machine lends its place to every page it shows: a page elsewhere can post here, and
 * with a name of its own that leads to 127.0.0.1 (DNS rebinding) it can also read the answer.
 */
function isFromElsewhere({ headers }: Request, mayBeCalled: (host: string) => boolean): boolean {
  const { host = '', origin } = headers;
  const url = URL.canParse(`http://${host}`) ? new URL(`http://${host}`) : undefined;
  if (url === undefined || !mayBeCalled(url.hostname)) return true;
  if (headers['sec-fetch-site'] === 'cross-site') return true;
  return origin !== undefined && !(URL.canParse(origin) && new URL(origin).host === url.host);
}

/** Basic too, with any user name: a browser has no other way to ask for a token. */
function givenToken({ headers: { authorization = '' } }: Request): string {
  const [, scheme = '', given = ''] = /^(bearer|basic) +(\S+) *$/i.exec(authorization) ?? [];
  if (scheme.toLowerCase() !== 'basic') return given;
  return Buffer.from(given, 'base64')
    .toString('utf8')
    .replace(/^[^:]*:/, '');
}

/** Digests have one length and are compared in constant time: how long it takes tells nothing. */
function secretEquals(secret: string): (given: string) => boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  const expected = digest(secret);
  return (given) => timingSafeEqual(digest(given), expected);
}
