// Restricts the admin listener to token holders, or to loopback if no token is configured, and rejects
// cross-origin requests.
import { createHash, timingSafeEqual } from 'node:crypto';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { isLoopback } from '../../config/addresses.js';
import { ServiceError } from '../../errors.js';
import { callOf } from '../../http/router.js';
import { isProbe } from './routes.js';
import { ERRORS } from './plugin.js';

/** Creates the access check. If no token is configured, it allows only requests to a loopback host. */
export function createTokenCheck(token: string | undefined): RequestHandler {
  const isExpected = token === undefined ? undefined : secretEquals(token);
  return function checkToken(req: Request, res: Response, next: NextFunction): void {
    const { route } = callOf(res);
    if (route !== undefined && isProbe(route)) next();
    else if (isCrossOrigin(req, isExpected === undefined ? isLoopback : () => true)) {
      next(
        new ServiceError(ERRORS.ADMIN_CROSS_ORIGIN, {
          detail: 'the Origin or Host does not match the admin listener',
        }),
      );
    } else if (isExpected === undefined || isExpected(givenToken(req))) next();
    else {
      // Sends one header per scheme, because browsers ignore a header that starts with an unknown scheme.
      res.set('WWW-Authenticate', ['Basic realm="admin"', 'Bearer realm="admin"']);
      next(
        new ServiceError(ERRORS.ADMIN_TOKEN_NEEDED, { detail: 'send "Authorization: Bearer <admin.token>"' }),
      );
    }
  };
}

/**
 * Detects requests from other sites' pages in a local browser, which could otherwise post here, or even read
 * responses through a host name that resolves to 127.0.0.1 (DNS rebinding).
 */
function isCrossOrigin({ headers }: Request, isAllowedHost: (host: string) => boolean): boolean {
  const { host = '', origin } = headers;
  const url = URL.canParse(`http://${host}`) ? new URL(`http://${host}`) : undefined;
  if (url === undefined || !isAllowedHost(url.hostname)) return true;
  if (headers['sec-fetch-site'] === 'cross-site') return true;
  return origin !== undefined && !(URL.canParse(origin) && new URL(origin).host === url.host);
}

/** Returns the Bearer token or the Basic password; browsers can prompt only for Basic. */
function givenToken({ headers: { authorization = '' } }: Request): string {
  const [, scheme = '', given = ''] = /^(bearer|basic) +(\S+) *$/i.exec(authorization) ?? [];
  if (scheme.toLowerCase() !== 'basic') return given;
  return Buffer.from(given, 'base64')
    .toString('utf8')
    .replace(/^[^:]*:/, '');
}

/** Compares digests, which have equal lengths, in constant time. */
function secretEquals(secret: string): (given: string) => boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  const expected = digest(secret);
  return (given) => timingSafeEqual(digest(given), expected);
}
