// Proofs of identity: a password, or the answer to a challenge, against the keys in the identity's record.
import { createHash, createPublicKey, getHashes, timingSafeEqual, verify } from 'node:crypto';
import type { ValueReference } from '../../src/handle/value.js';
import { decodeOrNothing } from '../../src/handle/bytes-codec.js';
import { decodeKey } from '../../src/handle/key-data.js';
import type { RecordStore } from './store.js';

export const NOT_VERIFIED = 'Identity not verified';
const LOOKUP_FAILED = 'Exception (net.handle.hdllib.HandleException) verifying identity';

/** The answer to a challenge as an `Authorization: Handle` header or a JSON body carries it. */
export interface ChallengeAnswer {
  id: string;
  type: string;
  alg: string;
  cnonce: string;
  signature: string;
}

/** Reads `index:handle`; without an index it is 0, which stands for any key of that handle. */
export function parseIdentity(text: string): ValueReference {
  const [, index, handle] = /^(\d+):(.*)$/s.exec(text) ?? [];
  return handle === undefined ? { index: 0, handle: text } : { index: Number(index), handle };
}

/** Why a password does not prove the identity, or undefined when it does. */
export function passwordError(
  store: RecordStore,
  identity: ValueReference,
  password: Buffer,
): string | undefined {
  return keyError(store, identity, {
    type: 'HS_SECKEY',
    fits: (key) => key.equals(password),
  });
}

/** Why an answer to a challenge does not prove the identity, or undefined when it does. */
export function answerError(store: RecordStore, nonce: string, answer: ChallengeAnswer): string | undefined {
  const signed = Buffer.concat([Buffer.from(nonce, 'base64'), Buffer.from(answer.cnonce, 'base64')]);
  const signature = Buffer.from(answer.signature, 'base64');
  const algorithm = digestName(answer.alg);
  if (algorithm === undefined) return NOT_VERIFIED;
  const fits = (key: Buffer): boolean =>
    answer.type === 'HS_SECKEY'
      ? isDigest({ algorithm, signature, parts: [key, signed, key] })
      : isSignature({ algorithm, signature, signed, key });
  return keyError(store, parseIdentity(answer.id), { type: answer.type, fits });
}

function keyError(
  store: RecordStore,
  { index, handle }: ValueReference,
  { type, fits }: { type: string; fits: (key: Buffer) => boolean },
): string | undefined {
  if (!store.isHomed(handle)) return LOOKUP_FAILED;
  const keys = (store.get(handle) ?? []).filter(
    (value) => value.type === type && (index === 0 || index === value.index),
  );
  return keys.some(({ data }) => fits(data)) ? undefined : NOT_VERIFIED;
}

/** `SHA256`, `SHA-256` and `sha256` are the same digest. */
function digestName(alg: string): string | undefined {
  const name = alg.replace('-', '').toLowerCase();
  return getHashes().includes(name) ? name : undefined;
}

function isDigest({
  algorithm,
  signature,
  parts,
}: {
  algorithm: string;
  signature: Buffer;
  parts: Buffer[];
}) {
  const expected = createHash(algorithm).update(Buffer.concat(parts)).digest();
  return expected.length === signature.length && timingSafeEqual(expected, signature);
}

function isSignature(proof: { algorithm: string; signature: Buffer; signed: Buffer; key: Buffer }): boolean {
  const jwk = decodeOrNothing(decodeKey, proof.key);
  if (jwk?.kty !== 'RSA') return false;
  return verify(proof.algorithm, proof.signed, createPublicKey({ key: jwk, format: 'jwk' }), proof.signature);
}
