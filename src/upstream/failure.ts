// Turns what a request meets into an error of the catalogue that tells an operator what to do.
import { type ErrorCode, ServiceError } from '../errors.js';
import { PIN_MISMATCH } from './fingerprint.js';

const WAYS_TO_TRUST = 'set upstream.caFile or upstream.fingerprint';

/** Errors of TLS: they come before any byte of a request, and asking again changes nothing. */
const TLS_DETAILS: Record<string, string> = {
  CERT_HAS_EXPIRED: `its certificate has expired: renew it, or set upstream.fingerprint`,
  CERT_NOT_YET_VALID: 'its certificate is not valid yet: check the clocks',
  DEPTH_ZERO_SELF_SIGNED_CERT: `its certificate is self-signed: ${WAYS_TO_TRUST}`,
  SELF_SIGNED_CERT_IN_CHAIN: `its certificate comes from an unknown authority: ${WAYS_TO_TRUST}`,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: `its certificate comes from an unknown authority: ${WAYS_TO_TRUST}`,
  UNABLE_TO_GET_ISSUER_CERT: `its certificate comes from an unknown authority: ${WAYS_TO_TRUST}`,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: `its certificate comes from an unknown authority: ${WAYS_TO_TRUST}`,
  ERR_TLS_CERT_ALTNAME_INVALID:
    'its certificate is for another name: use that name in upstream.url, or set upstream.fingerprint',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it speaks no TLS there: check whether upstream.url should be http or https',
  ERR_SSL_PACKET_LENGTH_TOO_LONG:
    'it speaks no TLS there: check whether upstream.url should be http or https',
  [PIN_MISMATCH]: 'its certificate is not the one pinned in upstream.fingerprint',
};

/** Errors of a connection: the next one may be better. A kept-alive socket may have been closed meanwhile. */
const CONNECTION_DETAILS: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused: check that it runs at upstream.url',
  ECONNRESET: 'the connection was cut',
  EPIPE: 'the connection was cut',
  UND_ERR_SOCKET: 'the connection was cut',
  ENOTFOUND: 'its host name is unknown: check upstream.url',
  EAI_AGAIN: 'its host name cannot be looked up at the moment',
  EHOSTUNREACH: 'there is no way to its host',
  ENETUNREACH: 'there is no way to its network',
};

const TIMEOUTS = new Set([
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);

/** Not HTTP (HPE_* of the parser), more headers than are taken, or a broken compression (Z_*). */
const NOT_AN_ANSWER = /^(HPE_|Z_|UND_ERR_HEADERS_OVERFLOW$|UND_ERR_RES_)/;

/** Whether the same question deserves a second try on a fresh connection. */
export function isConnectionFailure(error: unknown): boolean {
  if (!(error instanceof ServiceError) || error.code !== 'UPSTREAM_UNREACHABLE') return false;
  return (codeOf(error.cause) ?? '') in CONNECTION_DETAILS;
}

/** Errors before a connection came about: nothing of the request can have reached the server. */
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

/** Whether a write that failed so has surely not been carried out. */
export function neverReached(error: unknown): boolean {
  return error instanceof ServiceError && isBeforeConnection(codeOf(error.cause) ?? '');
}

/**
 * What a failure may be due to: `connection`, of which no request is the cause, as none was sent; `server`, which may
 * be down, hanging or behind a gateway that says so; or the one `record` that was asked for.
 */
export type FailureScope = 'connection' | 'server' | 'record';

/** RFC 9110 §15.6.3 to §15.6.5. A Handle server itself answers 500 for a record that it cannot read. */
const GATEWAY_STATUSES: readonly unknown[] = [502, 503, 504];

export function scopeOf(failure: ServiceError): FailureScope {
  if (neverReached(failure)) return 'connection';
  const { code, upstreamStatus, cause } = failure;
  if (code !== 'UPSTREAM_BAD_ANSWER' && code !== 'UPSTREAM_FAILED') return 'server';
  const isHttp = !codeOf(cause)?.startsWith('HPE_');
  return isHttp && !GATEWAY_STATUSES.includes(upstreamStatus) ? 'record' : 'server';
}

/** Names what went wrong on the way to the Handle server. */
export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const { code, detail } = classify(codeOf(error));
  return new ServiceError(code, { detail, cause: error });
}

function classify(code: string | undefined): { code: ErrorCode; detail: string } {
  if (code === undefined) return { code: 'UPSTREAM_UNREACHABLE', detail: 'the request could not be sent' };
  if (TIMEOUTS.has(code)) return { code: 'UPSTREAM_TIMEOUT', detail: code };
  if (NOT_AN_ANSWER.test(code)) return { code: 'UPSTREAM_BAD_ANSWER', detail: `no proper HTTP (${code})` };
  const advice = TLS_DETAILS[code] ?? CONNECTION_DETAILS[code];
  return { code: 'UPSTREAM_UNREACHABLE', detail: advice === undefined ? code : `${advice} (${code})` };
}

/** A fetch wraps the error it met as `cause`; node:http and nock give the error itself. */
function codeOf(error: unknown): string | undefined {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: { code?: unknown; name?: unknown } };
  const found = cause?.code ?? code;
  if (typeof found === 'string') return found;
  // undici's parser gives no code for what does not even begin like HTTP.
  return cause?.name === 'HTTPParserError' ? 'HPE_NOT_HTTP' : undefined;
}
