// Repositories: a record has a single URL value, and nothing can be written.
import { toBytes } from '../../handle/bytes.js';
import { writeJson } from '../../handle/json.js';
import type { Found } from '../../handle/outcome.js';
import { ServiceError } from '../../errors.js';
import { type UpstreamResponse, invalidResponse } from '../../upstream/response.js';
import { ERRORS } from './plugin.js';

/** A repository mints its own handles, with case-sensitive suffixes, and has neither logins nor prefix records. */
export const REPOSITORY = {
  keepsCase: true,
  holdsPrefixRecords: false,
  forwards: false,
  refusal: () => new ServiceError(ERRORS.REPOSITORY_MINTS, { allow: ['GET', 'HEAD', 'OPTIONS'] }),
} as const;

/** Readable by administrators and the public, not writable. */
const PERMISSIONS = '1010';

/** The timestamp of DSpace's plugin for CNRI's server: 100 s after the epoch (HandlePlugin.java). */
const TIMESTAMP = '1970-01-01T00:01:40Z';

/** Builds a repository's record, which has a single URL value. */
export function urlRecord(url: string, { index, ttl }: { index: number; ttl: number }): Found {
  const data = { format: 'string', value: url };
  const value = { index, type: 'URL', data, permissions: PERMISSIONS, ttl, timestamp: TIMESTAMP };
  return { kind: 'found', values: toBytes(writeJson([value])), ttls: [ttl] };
}

/** @throws ServiceError UPSTREAM_INVALID_RESPONSE unless the text is an absolute http(s) URL */
export function assertWebUrl(text: string, response: UpstreamResponse): void {
  const isWebUrl = /^https?:\/\/[^/\s]/i.test(text) && !/\p{Cc}/u.test(text) && URL.canParse(text);
  if (!isWebUrl) throw invalidResponse('a record without a web address', response);
}
