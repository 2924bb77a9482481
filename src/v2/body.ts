// The JSON body of a PUT or POST: media type, content coding, syntax.
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import type { Request } from 'express';
import { ServiceError } from '../errors.js';
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
  const encoding = req.headers['content-encoding'];
  return withBody(req, async (body) => work(parse(await decompress(body, encoding, settings.maxBodyBytes))));
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ServiceError('V2_BAD_BODY', { detail: `not valid UTF-8 JSON (${reason})`, cause });
  }
}

const DECOMPRESS = { gzip: promisify(gunzip), deflate: promisify(inflate), br: promisify(brotliDecompress) };

async function decompress(body: Buffer, encoding = 'identity', maxBytes: number): Promise<Buffer> {
  const name = encoding.trim().toLowerCase();
  if (name === 'identity') return body;
  if (!Object.hasOwn(DECOMPRESS, name)) {
    throw new ServiceError('V2_NOT_JSON', { detail: `unknown Content-Encoding ${JSON.stringify(encoding)}` });
  }
  try {
    return await DECOMPRESS[name as keyof typeof DECOMPRESS](body, { maxOutputLength: maxBytes });
  } catch (cause) {
    if ((cause as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE') {
      throw new ServiceError('BODY_TOO_LARGE', { detail: `at most ${maxBytes} bytes are accepted` });
    }
    throw new ServiceError('V2_BAD_BODY', { detail: `not valid ${name}`, cause });
  }
}
