// The bodies of responses (RFC 3652 §3.2.2, §3.3, §3.4): record, site, referral, challenge, error text; the digest before them.
import { createHash } from 'node:crypto';
import { ByteReader, int32, sized } from '../../handle/bytes.js';
import { RESPONSE_CODE } from '../../handle/response-codes.js';
import type { HandleValue } from '../../handle/value.js';
import { type Decoded, decoded } from './decoded.js';
import { type Version, isBefore } from './envelope.js';
import { type Header, type Message, OP_CODE } from './message.js';
import { encodeValue, readValue } from './value.js';

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

interface DigestForm {
  /** The byte before the digest. */
  code: number;
  algorithm: string;
  bytes: number;
}

/** Before 2.1 there is neither a code nor the flag in the answer (recording "CERT+RRDG in protocol 2.0"). */
const MD5 = { code: 0, algorithm: 'md5', bytes: 16 };
const SHA1 = { code: 2, algorithm: 'sha1', bytes: 20 };
const SHA256 = { code: 3, algorithm: 'sha256', bytes: 32 };
const FORMS: DigestForm[] = [MD5, { ...MD5, code: 1 }, SHA1, SHA256];

/** The digest of a request's header and body, as it stands before the body of the response. */
export function encodeDigest(version: Version, digested: Buffer): Buffer {
  const { code, algorithm } = isBefore(version, 1) ? MD5 : isBefore(version, 7) ? SHA1 : SHA256;
  return Buffer.concat([Buffer.of(code), createHash(algorithm).update(digested).digest()]);
}

export interface Response {
  /** As `encodeDigest` writes it; empty when there is none. */
  digest: Buffer;
  body: ResponseBody;
}

/** `hasDigest`: the flag of the response, or of a request before 2.1. */
export function decodeResponse(message: Message, { hasDigest }: { hasDigest: boolean }): Decoded<Response> {
  return decoded(() => {
    const reader = new ByteReader(message.body);
    const digest = hasDigest ? readDigest(reader) : Buffer.alloc(0);
    return { digest, body: readBody(reader, message.header) };
  });
}

function readDigest(reader: ByteReader): Buffer {
  const code = reader.byte();
  const form = FORMS.find((candidate) => candidate.code === code);
  if (form === undefined) throw new RangeError('an unknown digest algorithm');
  return Buffer.concat([Buffer.of(code), reader.take(form.bytes)]);
}

function readBody(reader: ByteReader, { opCode, responseCode }: Header): ResponseBody {
  const { success, authenticationNeeded, serviceReferral, prefixReferral } = RESPONSE_CODE;
  if (responseCode === authenticationNeeded) return { kind: 'challenge', nonce: reader.sized() };
  if (responseCode === serviceReferral || responseCode === prefixReferral) {
    return { kind: 'referral', ...readRecord(reader) };
  }
  if (responseCode !== success) return { kind: 'text', text: reader.text() };
  if (opCode === OP_CODE.siteInfo) return { kind: 'site', site: reader.take(reader.remaining) };
  return { kind: 'record', ...readRecord(reader) };
}

/** A referral may end after the handle. */
function readRecord(reader: ByteReader): { handle: Buffer; values: HandleValue[] } {
  const handle = reader.sized();
  return { handle, values: reader.remaining === 0 ? [] : reader.list(() => readValue(reader)) };
}
