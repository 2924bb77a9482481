// Access to the admin listener: by token, or from this machine when no token is set; never cross-origin.
import { createHash, timingSafeEqual } from 'node:crypto';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { isLoopback } from '../config/addresses.js';
import { ServiceError } from '../errors.js';
import { callOf } from './call.js';
import { isProbe } from './routes.js';

/** Without a token only requests to a loopback host are allowed. */
export function createTokenCheck(token: string | undefined): RequestHandler {
  const isExpected = token === undefined ? undefined : secretEquals(token);
  return function checkToken(req: Request, res: Response, next: NextFunction): void {
    const { route } = callOf(res);
    if (route !== undefined && isProbe(route)) next();
    else if (isCrossOrigin(req, isExpected === undefined ? isLoopback : () => true)) {
      next(
        new ServiceError('ADMIN_CROSS_ORIGIN', {
          detail: 'the Origin or Host is not that of the admin listener',
        }),
      );
    } else if (isExpected === undefined || isExpected(givenToken(req))) next();
    else {
      // One header per scheme: browsers ignore a header that begins with an unknown scheme.
      res.set('WWW-Authenticate', ['Basic realm="admin"', 'Bearer realm="admin"']);
      next(new ServiceError('ADMIN_TOKEN_NEEDED', { detail: 'send "Authorization: Bearer <admin.token>"' }));
    }
  };
}

/**
 * Pages of any site, in a browser on this machine, could otherwise post here, and with a host name that
 * resolves to 127.0.0.1 (DNS rebinding) also read the response.
 */
function isCrossOrigin({ headers }: Request, isAllowedHost: (host: string) => boolean): boolean {
  const { host = '', origin } = headers;
  const url = URL.canParse(`http://${host}`) ? new URL(`http://${host}`) : undefined;
  if (url === undefined || !isAllowedHost(url.hostname)) return true;
  if (headers['sec-fetch-site'] === 'cross-site') return true;
  return origin !== undefined && !(URL.canParse(origin) && new URL(origin).host === url.host);
}

/** The token of Bearer, or the password of Basic, because browsers can only prompt for Basic. */
function givenToken({ headers: { authorization = '' } }: Request): string {
  const [, scheme = '', given = ''] = /^(bearer|basic) +(\S+) *$/i.exec(authorization) ?? [];
  if (scheme.toLowerCase() !== 'basic') return given;
  return Buffer.from(given, 'base64')
    .toString('utf8')
    .replace(/^[^:]*:/, '');
}

/** Compares in constant time; digests, because they have equal lengths. */
function secretEquals(secret: string): (given: string) => boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  const expected = digest(secret);
  return (given) => timingSafeEqual(digest(given), expected);
}
