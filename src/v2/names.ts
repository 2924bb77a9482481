// The names that POST makes.
import { createHash } from 'node:crypto';
import { ServiceError } from '../errors.js';
import { MAX_HANDLE_BYTES } from '../handle/handle.js';
import type { HandleValue, ValueReference } from '../handle/value.js';

const GENERATORS = ['uuid', 'juuid'];

/** Makes the handle of a UUID. No separators are put in between, as in the original. */
export function readGenerator(prefix: string, parameters: URLSearchParams): (uuid: string) => string {
  const generator = parameters.get('generator') ?? 'uuid';
  if (!GENERATORS.includes(generator)) {
    const detail = `there is no generator ${JSON.stringify(generator)}, give one of ${GENERATORS.join(', ')}`;
    throw new ServiceError('BAD_PARAMETER', { detail });
  }
  const [before, after] = [parameters.get('prefix') ?? '', parameters.get('suffix') ?? ''];
  return (uuid) => requireShort(`${prefix}/${before}${uuid}${after}`);
}

function requireShort(handle: string): string {
  if (handle.includes('\0')) throw new ServiceError('BAD_PARAMETER', { detail: 'a name holds no NUL' });
  if (Buffer.byteLength(handle) > MAX_HANDLE_BYTES) throw new ServiceError('HANDLE_TOO_LONG');
  return handle;
}

/** A UUID of version 8 (RFC 9562 §5.8), the same for the same texts. */
export function uuidOf(texts: readonly string[]): string {
  const hex = digest(texts);
  const variant = '89ab'[parseInt(hex.charAt(16), 16) % 4] ?? '8';
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** What is the same for a POST that is sent again: who asks, where, and for which values. */
export function askOf(post: {
  identity: ValueReference;
  prefix: string;
  query: string;
  values: readonly HandleValue[];
}): string {
  const { identity, prefix, query, values } = post;
  return digest([`${identity.index}:${identity.handle}`, prefix, query, JSON.stringify(values)]);
}

const digest = (texts: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(texts)).digest('hex');
