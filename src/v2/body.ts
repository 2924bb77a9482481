// Reads the JSON body of a PUT or POST: the only place where this service parses a body.
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import type { Request } from 'express';
import { ServiceError } from '../errors.js';
import type { V2Deps } from './deps.js';

/** Media types of the original (`application/x-json` is older than RFC 8259). */
const JSON_TYPES = /^application\/(?:x-)?json$/i;

/** @throws ServiceError V2_NOT_JSON, also without any Content-Type as in the original */
export function requireJson(req: Request): void {
  const [type = '', ...parameters] = (req.headers['content-type'] ?? '')
    .split(';')
    .map((part) => part.trim());
  const charset = parameters.find((part) => /^charset=/i.test(part))?.slice('charset='.length);
  if (!JSON_TYPES.test(type)) {
    throw new ServiceError('V2_NOT_JSON', { detail: 'send Content-Type: application/json' });
  }
  if (charset !== undefined && !/^"?utf-?8"?$/i.test(charset)) {
    throw new ServiceError('V2_NOT_JSON', { detail: 'send it in UTF-8' });
  }
}

/**
 * Does the work with the JSON that was sent; the memory of the body counts until it is done.
 *
 * @throws ServiceError V2_BAD_BODY, BODY_TOO_LARGE, OVERLOADED or V2_NOT_JSON (a Content-Encoding nobody knows)
 */
export function withJson<T>(
  { withBody, settings }: Pick<V2Deps, 'withBody' | 'settings'>,
  req: Request,
  work: (json: unknown) => Promise<T>,
): Promise<T> {
  return withBody(req, async (body) =>
    work(parse(await unpack(body, req.headers['content-encoding'], settings.maxBodyBytes))),
  );
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ServiceError('V2_BAD_BODY', { detail: `it is no JSON in UTF-8 (${reason})`, cause });
  }
}

const UNPACK = { gzip: promisify(gunzip), deflate: promisify(inflate), br: promisify(brotliDecompress) };

async function unpack(body: Buffer, encoding = 'identity', maxBodyBytes: number): Promise<Buffer> {
  const name = encoding.trim().toLowerCase();
  if (name === 'identity') return body;
  if (!Object.hasOwn(UNPACK, name)) {
    throw new ServiceError('V2_NOT_JSON', { detail: `unknown Content-Encoding ${JSON.stringify(encoding)}` });
  }
  try {
    return await UNPACK[name as keyof typeof UNPACK](body, { maxOutputLength: maxBodyBytes });
  } catch (cause) {
    if ((cause as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE') {
      throw new ServiceError('BODY_TOO_LARGE', { detail: `at most ${maxBodyBytes} bytes are accepted` });
    }
    throw new ServiceError('V2_BAD_BODY', { detail: `it is not ${name}`, cause });
  }
}
