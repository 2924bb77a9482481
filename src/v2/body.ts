// The JSON body of a PUT or POST and its media type.
import type { Request } from 'express';
import { ServiceError } from '../errors.js';
import { parseJsonBody } from '../http/request-body.js';
import type { V2Deps } from './deps.js';

/** `application/x-json` of the original service is older than RFC 8259. */
const JSON_TYPES = /^application\/(?:x-)?json$/i;

/** @throws ServiceError V2_NOT_JSON, also for a missing Content-Type as in the original service */
export function assertJson({ headers }: Request): void {
  const [type = '', ...parameters] = (headers['content-type'] ?? '').split(';').map((part) => part.trim());
  const charset = parameters.find((part) => /^charset=/i.test(part))?.slice('charset='.length);
  if (!JSON_TYPES.test(type)) {
    throw new ServiceError('V2_NOT_JSON', { detail: 'send Content-Type: application/json' });
  }
  if (charset !== undefined && !/^"?utf-?8"?$/i.test(charset)) {
    throw new ServiceError('V2_NOT_JSON', { detail: 'send it in UTF-8' });
  }
}

/**
 * Receives the body and passes its JSON to `work`; the memory of the body counts until the work is done.
 *
 * @throws ServiceError V2_BAD_BODY, BODY_TOO_LARGE, OVERLOADED, or V2_NOT_JSON for an unknown Content-Encoding
 */
export function withJson<T>(
  { withBody, settings }: Pick<V2Deps, 'withBody' | 'settings'>,
  req: Request,
  work: (json: unknown) => Promise<T>,
): Promise<T> {
  const options = {
    encoding: req.headers['content-encoding'],
    maxBodyBytes: settings.maxBodyBytes,
    codes: { invalid: 'V2_BAD_BODY', encoding: 'V2_NOT_JSON' },
  } as const;
  return withBody(req, async (body) => work(await parseJsonBody(body, options)));
}
