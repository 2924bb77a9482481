// Errors of connections and of HTTP, classified and explained to the operator.
import { type ErrorCode, ServiceError } from '../errors.js';
import { PIN_MISMATCH } from './fingerprint.js';

const WAYS_TO_TRUST = 'set upstream.caFile or upstream.fingerprint';

const NO_TLS = 'it does not speak TLS there: check whether upstream.url should be http or https';
const UNKNOWN_AUTHORITY = `its certificate comes from an unknown authority: ${WAYS_TO_TRUST}`;

/** Errors of TLS: they come before any byte of a request, and a retry changes nothing. */
const TLS_DETAILS: Record<string, string> = {
  CERT_HAS_EXPIRED: `its certificate has expired: renew it, or set upstream.fingerprint`,
  CERT_NOT_YET_VALID: 'its certificate is not valid yet: check the clocks',
  DEPTH_ZERO_SELF_SIGNED_CERT: `its certificate is self-signed: ${WAYS_TO_TRUST}`,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  ERR_TLS_CERT_ALTNAME_INVALID:
    'its certificate is for another name: use that name in upstream.url, or set upstream.fingerprint',
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NO_TLS,
  [PIN_MISMATCH]: 'its certificate is not the one pinned in upstream.fingerprint',
};

/** Errors of a connection: a new one may do better. */
const CONNECTION_DETAILS: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused: check that it runs at upstream.url',
  ECONNRESET: 'the connection was cut',
  EPIPE: 'the connection was cut',
  UND_ERR_SOCKET: 'the connection was cut',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'the connection was cut',
  HPE_INVALID_EOF_STATE: 'the connection was cut',
  ENOTFOUND: 'its host name is unknown: check upstream.url',
  EAI_AGAIN: 'its host name cannot be looked up at the moment',
  EHOSTUNREACH: 'there is no way to its host',
  ENETUNREACH: 'there is no way to its network',
};

const TIMEOUTS = new Set(['ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT']);

/** Not HTTP (HPE_* of the parser), too many headers, or a broken compression (Z_*). */
const INVALID_HTTP = /^(HPE_|Z_|UND_ERR_HEADERS_OVERFLOW$)/;

/** Whether a retry on a new connection may succeed. */
export function isConnectionFailure(error: unknown): boolean {
  if (!(error instanceof ServiceError) || error.code !== 'UPSTREAM_UNREACHABLE') return false;
  return (codeOf(error.cause) ?? '') in CONNECTION_DETAILS;
}

/** Errors before a connection was established: nothing of the request can have reached the server. */
const BEFORE_CONNECTION = new Set([
  ...Object.keys(TLS_DETAILS),
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** Whether an error with this code came before any byte of a request was sent. */
export const isBeforeConnection = (code: string): boolean => BEFORE_CONNECTION.has(code);

/** Whether a request failed before any byte of it was sent, so that the server cannot have carried it out. */
export function wasNeverSent(error: unknown): boolean {
  return error instanceof ServiceError && isBeforeConnection(codeOf(error.cause) ?? '');
}

/**
 * What failed: the `connection`, before any request was sent; the `server`, which may be down, hanging or behind a
 * gateway that reports it; or the requested `record` only.
 */
export type FailureScope = 'connection' | 'server' | 'record';

/** RFC 9110 §15.6.3 to §15.6.5. A Handle server itself answers 500 for a record that it cannot read. */
const GATEWAY_STATUSES: readonly unknown[] = [502, 503, 504];

export function scopeOf(failure: ServiceError): FailureScope {
  if (wasNeverSent(failure)) return 'connection';
  const { code, upstreamStatus, cause } = failure;
  if (code !== 'UPSTREAM_BAD_ANSWER' && code !== 'UPSTREAM_FAILED') return 'server';
  const isHttp = !codeOf(cause)?.startsWith('HPE_');
  return isHttp && !GATEWAY_STATUSES.includes(upstreamStatus) ? 'record' : 'server';
}

/** The error of the catalogue for what an exchange failed with. */
export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const { code, detail } = classify(codeOf(error));
  return new ServiceError(code, { detail, cause: error });
}

function classify(code: string | undefined): { code: ErrorCode; detail: string } {
  if (code === undefined) return { code: 'UPSTREAM_UNREACHABLE', detail: 'the request could not be sent' };
  const advice = TLS_DETAILS[code] ?? CONNECTION_DETAILS[code];
  if (advice !== undefined) return { code: 'UPSTREAM_UNREACHABLE', detail: `${advice} (${code})` };
  if (TIMEOUTS.has(code)) return { code: 'UPSTREAM_TIMEOUT', detail: code };
  if (INVALID_HTTP.test(code)) return { code: 'UPSTREAM_BAD_ANSWER', detail: `invalid HTTP (${code})` };
  return { code: 'UPSTREAM_UNREACHABLE', detail: code };
}

function codeOf(error: unknown): string | undefined {
  const { code, name, message } = (error ?? {}) as { code?: unknown; name?: unknown; message?: unknown };
  // undici gives these a code of their own by message only: an interim response that no request allows.
  if (code === 'UND_ERR_SOCKET' && message === 'bad upgrade') return 'HPE_UNREQUESTED: HTTP 101';
  if (code === 'UND_ERR_SOCKET' && message === 'bad response') return 'HPE_UNREQUESTED: HTTP 100';
  if (typeof code === 'string') return code;
  // undici's parser gives no code for what does not even begin like HTTP.
  return name === 'HTTPParserError' ? 'HPE_NOT_HTTP' : undefined;
}
