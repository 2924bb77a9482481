// The bodies of responses (RFC 3652 §3.2.2, §3.3, §3.4): record, site, referral, challenge, error text; the digest before them.
import { createHash } from 'node:crypto';
import { int32, sized } from '../../handle/bytes.js';
import type { HandleValue } from '../../handle/value.js';
import { type Version, isBefore } from './envelope.js';
import { encodeValue } from './value.js';

export type ResponseBody =
  | { kind: 'record' | 'referral'; handle: Buffer; values: HandleValue[] }
  /** HS_SITE data. */
  | { kind: 'site'; site: Buffer }
  | { kind: 'challenge'; nonce: Buffer }
  | { kind: 'text'; text: string };

/** Undefined when it has more than `maxBytes`. @throws when the data of a value is not of a known format */
export function encodeBody(body: ResponseBody, maxBytes: number): Buffer | undefined {
  switch (body.kind) {
    case 'site':
      return body.site;
    case 'challenge':
      return sized(body.nonce);
    case 'text':
      return sized(body.text);
    default: {
      const parts = [sized(body.handle), int32(body.values.length)];
      let bytes = 0;
      for (const value of body.values) {
        const encoded = encodeValue(value);
        bytes += encoded.length;
        if (bytes > maxBytes) return undefined;
        parts.push(encoded);
      }
      return Buffer.concat(parts);
    }
  }
}

/** The byte before the digest. Before 2.1 there is neither a code nor the flag in the answer (recording "CERT+RRDG in protocol 2.0"). */
const MD5 = { code: 0, algorithm: 'md5' };
const SHA1 = { code: 2, algorithm: 'sha1' };
const SHA256 = { code: 3, algorithm: 'sha256' };

/** The digest of a request's header and body, as it stands before the body of the response. */
export function encodeDigest(version: Version, digested: Buffer): Buffer {
  const { code, algorithm } = isBefore(version, 1) ? MD5 : isBefore(version, 7) ? SHA1 : SHA256;
  return Buffer.concat([Buffer.of(code), createHash(algorithm).update(digested).digest()]);
}
