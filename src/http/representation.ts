// Creates response representations: identity or gzip, each with its own ETag.
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { type Bytes, fromBuffer, toBuffer, toBytes } from '../handle/bytes.js';
import { varyOf } from './cache-headers.js';

export type Encoding = 'identity' | 'gzip';

/** A response body in one encoding, with headers as alternating names and values. */
export interface Representation {
  encoding: Encoding;
  /** False for a body too short to compress. */
  isWorthGzip: boolean;
  body: Bytes;
  etag: string | undefined;
  /** Vary and ETag, which a 304 also contains (RFC 9110 §15.4.5). */
  common: string[];
  /** Content-Encoding, Content-Type and Content-Length. */
  ofBody: string[];
}

interface TextContent {
  text: string;
  contentType: string;
  /** Whether clients can revalidate the response. */
  hasEtag: boolean;
  /** Request headers that the content depends on, in addition to the common ones. */
  varies?: readonly string[] | undefined;
}

/** Creates the representation for an Accept-Encoding; returns a promise only for compression. */
export function represent(
  content: TextContent,
  { acceptEncoding, gzipMinBytes }: { acceptEncoding: string | undefined; gzipMinBytes: number },
): Representation | Promise<Representation> {
  const bytes = toBytes(content.text);
  const isWorthGzip = bytes.length >= gzipMinBytes;
  if (!isWorthGzip || !acceptsGzip(acceptEncoding))
    return describe(content, { encoding: 'identity', isWorthGzip, body: bytes });
  return compress(toBuffer(bytes)).then((compressed) =>
    describe(content, { encoding: 'gzip', isWorthGzip, body: fromBuffer(compressed) }),
  );
}

function describe(
  { text, contentType, hasEtag, varies }: TextContent,
  { encoding, isWorthGzip, body }: Pick<Representation, 'encoding' | 'isWorthGzip' | 'body'>,
): Representation {
  const etag = hasEtag ? etagOf(text, encoding) : undefined;
  const framing = ['Content-Type', contentType, 'Content-Length', String(body.length)];
  return {
    encoding,
    isWorthGzip,
    body,
    etag,
    common: etag === undefined ? ['Vary', varyOf(varies)] : ['Vary', varyOf(varies), 'ETag', etag],
    ofBody: encoding === 'gzip' ? ['Content-Encoding', 'gzip', ...framing] : framing,
  };
}

const compress = promisify(gzip);

/**
 * Returns a strong ETag of the UTF-8 bytes before encoding; gzip has a different ETag (RFC 9110 §8.8.3.3).
 */
export function etagOf(text: string, encoding: Encoding): string {
  const digest = hash('sha256', text, 'base64url').slice(0, 22);
  return encoding === 'gzip' ? `"${digest}-gz"` : `"${digest}"`;
}

/** Memoised decisions: clients send few distinct, short Accept-Encoding values. */
const decisions = new Map<string, boolean>();
const MAX_DECISIONS = 1000;
const MAX_KNOWN_CHARS = 256;

/** Whether gzip has at least the weight of identity (RFC 9110 §12.5.3). */
export function acceptsGzip(acceptEncoding: string | undefined): boolean {
  if (acceptEncoding === undefined) return false;
  if (acceptEncoding.length > MAX_KNOWN_CHARS) return prefersGzip(acceptEncoding);
  let decision = decisions.get(acceptEncoding);
  if (decision === undefined) {
    decision = prefersGzip(acceptEncoding);
    if (decisions.size >= MAX_DECISIONS) decisions.clear();
    decisions.set(acceptEncoding, decision);
  }
  return decision;
}

function prefersGzip(acceptEncoding: string): boolean {
  const weights = new Map<string, number>();
  for (const part of acceptEncoding.toLowerCase().split(',')) {
    const [name = '', ...parameters] = part.split(';').map((piece) => piece.trim());
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    weights.set(name, weight === undefined ? 1 : Number(weight));
  }
  const gzipWeight = weights.get('gzip') ?? weights.get('x-gzip') ?? weights.get('*') ?? 0;
  return gzipWeight > 0 && gzipWeight >= (weights.get('identity') ?? 0);
}
