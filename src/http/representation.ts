// Representations of a response: identity or gzip, each with its ETag.
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { type Bytes, fromBuffer, toBuffer, toBytes } from '../handle/bytes.js';
import { varyOf } from './cache-headers.js';

export type Encoding = 'identity' | 'gzip';

/** A response body in one encoding, and its headers (names and values alternately). */
export interface Representation {
  encoding: Encoding;
  /** False when the body is too short for compression. */
  isWorthGzip: boolean;
  body: Bytes;
  etag: string | undefined;
  /** Vary and ETag, which are in a 304 too (RFC 9110 §15.4.5). */
  common: string[];
  /** Content-Encoding, Content-Type and Content-Length. */
  ofBody: string[];
}

interface TextContent {
  text: string;
  contentType: string;
  /** Whether the response can be revalidated. */
  hasEtag: boolean;
  /** Request headers on which the content depends, in addition to those of every response. */
  varies?: readonly string[] | undefined;
}

/** The representation for an Accept-Encoding; a promise only if it is compressed. */
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

/** A strong ETag of the UTF-8 bytes before encoding; gzip has a different one (RFC 9110 §8.8.3.3). */
export function etagOf(text: string, encoding: Encoding): string {
  const digest = hash('sha256', text, 'base64url').slice(0, 22);
  return encoding === 'gzip' ? `"${digest}-gz"` : `"${digest}"`;
}

/** If-None-Match compares weakly: `*` or any tag of the list (RFC 9110 §13.1.2). */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch === etag) return true;
  return ifNoneMatch.split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')));
}

/** Memo: clients use few and short values of Accept-Encoding. */
const decisions = new Map<string, boolean>();
const MAX_DECISIONS = 1000;
const MAX_KNOWN_CHARS = 256;

/** True when gzip is accepted with at least the weight of identity (RFC 9110 §12.5.3). */
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
