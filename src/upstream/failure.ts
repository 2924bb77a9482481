// Classifies connection and HTTP errors, and explains them to the operator.
import type { Duplex } from 'node:stream';
import { type Diagnosis, type ErrorCode, ServiceError, errorText } from '../errors.js';

/** Error `code` for a certificate that is not pinned. */
export const PIN_MISMATCH = 'ERR_TLS_PIN_MISMATCH';

/** Error `code`s of an outgoing proxy that cannot be reached, that demands a login, and that opens no tunnel. */
export const PROXY_UNREACHABLE = 'ERR_PROXY_UNREACHABLE';
export const PROXY_LOGIN = 'ERR_PROXY_LOGIN';
export const PROXY_REFUSED = 'ERR_PROXY_REFUSED';

const NO_TLS: Diagnosis = {
  cause: 'the server does not speak TLS there',
  remedy: 'check whether {url} should be {schemes}',
};
const UNKNOWN_AUTHORITY: Diagnosis = {
  cause: 'its certificate comes from an unknown authority',
  remedy: '{trust}',
};
const CUT: Diagnosis = {
  cause: 'the connection was cut',
  remedy: 'see the log of the server, and check whether {url} should be {schemes}',
};

const OLD_TLS: Diagnosis = {
  cause: 'the server lacks TLS 1.2 and 1.3',
  remedy: 'turn on TLS 1.2 or 1.3 at the server, or put a gateway that has one in front of it',
};
const LATE: Diagnosis = { cause: 'no connection in time', remedy: 'check the network' };
const FRAMING: Diagnosis = {
  cause: 'the response has several lengths, or a length and chunks',
  remedy: 'have the server, or the gateway in front of it, send one Content-Length, or only chunks',
};

/** Errors of the TLS handshake and of the outgoing proxy, which precede the first request byte; a retry does not help. */
const HANDSHAKE_ERRORS: Record<string, Diagnosis> = {
  CERT_HAS_EXPIRED: { cause: 'its certificate has expired', remedy: 'renew it{orPin}' },
  CERT_NOT_YET_VALID: { cause: 'its certificate is not valid yet', remedy: 'check the clocks' },
  DEPTH_ZERO_SELF_SIGNED_CERT: { cause: 'its certificate is self-signed', remedy: '{trust}' },
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  ERR_TLS_CERT_ALTNAME_INVALID: {
    cause: 'its certificate is for another name',
    remedy: 'use a name of its certificate in {url}{orPin}',
  },
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NO_TLS,
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: OLD_TLS,
  ERR_SSL_UNSUPPORTED_PROTOCOL: OLD_TLS,
  [PIN_MISMATCH]: {
    cause: 'its certificate is not the pinned one',
    remedy: 'compare the two; set {pin} if the server has a new certificate',
  },
  [PROXY_UNREACHABLE]: {
    cause: 'the outgoing proxy cannot be reached',
    remedy: 'check HTTPS_PROXY (HTTP_PROXY for http addresses), or name the host of {url} in NO_PROXY',
  },
  [PROXY_LOGIN]: {
    cause: 'the outgoing proxy requires a login',
    remedy: 'give user and password in HTTPS_PROXY (HTTP_PROXY for http addresses), percent-encoded',
  },
  [PROXY_REFUSED]: {
    cause: 'the outgoing proxy opened no connection to the host',
    remedy: 'allow CONNECT to the host and port of {url} there, or name the host in NO_PROXY',
  },
  UND_ERR_CONNECT_TIMEOUT: LATE,
};

/** Errors of this proxy, whose messages tell more than their codes. */
const TELLING: readonly string[] = [PIN_MISMATCH, PROXY_UNREACHABLE, PROXY_LOGIN, PROXY_REFUSED];

/** TLS alerts about the client certificate (RFC 8446 §6.2), by their names in the codes of OpenSSL. */
const CERTIFICATE_ALERT =
  /^ERR_SSL_.*_ALERT_((?:BAD|UNSUPPORTED)_CERTIFICATE|CERTIFICATE_\w+|UNKNOWN_CA|ACCESS_DENIED|HANDSHAKE_FAILURE)$/;

const REFUSED: Diagnosis = {
  cause: 'the server refuses the client certificate, or demands one',
  remedy: '{client}, to a certificate that it accepts',
};

const ALERTS: Record<string, Diagnosis> = {
  CERTIFICATE_REQUIRED: { cause: 'the server demands a client certificate', remedy: '{client}' },
  UNKNOWN_CA: { ...REFUSED, cause: 'the server does not know the authority of the client certificate' },
  CERTIFICATE_EXPIRED: { ...REFUSED, cause: 'the client certificate has expired' },
  HANDSHAKE_FAILURE: {
    cause: 'the server ended the TLS handshake',
    remedy: 'if it demands a client certificate, {client}; otherwise check its TLS versions and ciphers',
  },
};

/** Returns the diagnosis of an alert after which the server reads no request. */
function alertIn(code: string): Diagnosis | undefined {
  const [, alert] = CERTIFICATE_ALERT.exec(code) ?? [];
  return alert === undefined ? undefined : (ALERTS[alert] ?? REFUSED);
}

/** Errors that precede the connection, after which a new one may succeed. */
const CONNECT_ERRORS: Record<string, Diagnosis> = {
  ECONNREFUSED: { cause: 'the connection was refused', remedy: 'check that the server runs at {url}' },
  ENOTFOUND: { cause: 'its host name is unknown', remedy: 'check {url}' },
  EAI_AGAIN: { cause: 'its host name cannot be looked up at the moment', remedy: 'check the name server' },
  EMFILE: {
    cause: 'this process may open no more files',
    remedy: 'raise the file limit (ulimit -n, LimitNOFILE= of systemd)',
  },
  EHOSTUNREACH: { cause: 'there is no route to its host', remedy: 'check the network' },
  ENETUNREACH: { cause: 'there is no route to its network', remedy: 'check the network' },
};

/** Errors of a connection that was cut: a GET may succeed on a new one. */
const CUT_ERRORS: readonly string[] = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'];

const KNOWN: Record<string, Diagnosis> = {
  ...HANDSHAKE_ERRORS,
  ...CONNECT_ERRORS,
  ...Object.fromEntries(CUT_ERRORS.map((code) => [code, CUT])),
  HPE_INVALID_EOF_STATE: CUT,
  ETIMEDOUT: LATE,
  // Contradictory lengths of a response, which could hide a second one in it (RFC 9112 §6.3).
  HPE_UNEXPECTED_CONTENT_LENGTH: FRAMING,
  HPE_INVALID_CONTENT_LENGTH: FRAMING,
  HPE_INVALID_TRANSFER_ENCODING: FRAMING,
};

/** Matches codes for invalid HTTP (parser codes HPE_*), too many headers, and corrupt compression (Z_*). */
const INVALID_HTTP = /^(HPE_|Z_|UND_ERR_HEADERS_OVERFLOW$)/;

/** Whether a retry on a new connection may succeed. */
export function isConnectionFailure(error: unknown): boolean {
  const reason = codeOf(error) ?? '';
  return reason in CONNECT_ERRORS || CUT_ERRORS.includes(reason);
}

/** Errors of connections that were open: a gateway in between can cause a code of the handshake at any time. */
const ofOpenConnections = new WeakSet<object>();

/** Notes that a connection is open, so that a request may have been sent before its error. */
export function noteOpen(socket: Duplex): void {
  // Before the listener of the HTTP client, which passes the error on.
  socket.prependOnceListener('error', (error: Error) => ofOpenConnections.add(error));
}

/** Whether an error precedes the first byte of a request that the server reads: it cannot have executed it. */
export function isBeforeRequest(error: unknown): boolean {
  const code = codeOf(error) ?? '';
  // TLS 1.3 refuses a client certificate on an open connection.
  if (alertIn(code) !== undefined) return true;
  return (code in HANDSHAKE_ERRORS || code in CONNECT_ERRORS) && !ofOpenConnections.has(error as Error);
}

/** Whether a request failed before the server could read it. */
export const wasNeverSent = (error: unknown): boolean =>
  error instanceof ServiceError && isBeforeRequest(error.cause);

/**
 * Scope of a failure: the `connection`, before any request was sent; the `server`, which may be down, hanging
 * or behind a failing gateway; or only the requested `record`.
 */
export type FailureScope = 'connection' | 'server' | 'record';

/** Gateway statuses (RFC 9110 §15.6.3 to §15.6.5). A Handle server sends 500 for an unreadable record. */
const GATEWAY_STATUSES: readonly unknown[] = [502, 503, 504];

export function scopeOf(failure: ServiceError): FailureScope {
  if (wasNeverSent(failure)) return 'connection';
  const { code, upstreamStatus, cause } = failure;
  if (code !== 'UPSTREAM_INVALID_RESPONSE' && code !== 'UPSTREAM_FAILED') return 'server';
  const isHttp = !codeOf(cause)?.startsWith('HPE_');
  return isHttp && !GATEWAY_STATUSES.includes(upstreamStatus) ? 'record' : 'server';
}

/** Converts an exchange error to a catalogue error. */
export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const reason = codeOf(error);
  const diagnosis = diagnose(reason, error);
  return new ServiceError(errorCodeOf(reason), { diagnosis, cause: error });
}

function errorCodeOf(reason = ''): ErrorCode {
  if (KNOWN[reason] === LATE) return 'UPSTREAM_TIMEOUT';
  return INVALID_HTTP.test(reason) ? 'UPSTREAM_INVALID_RESPONSE' : 'UPSTREAM_UNREACHABLE';
}

/** Returns the cause and remedy for a failure, naming the server's configuration keys. */
export function explainServerFailure(
  { cause, diagnosis, message }: ServiceError,
  keys: ServerKeys,
): Diagnosis {
  if (cause instanceof ServiceError) return explainServerFailure(cause, keys);
  const reason = codeOf(cause);
  if (reason !== undefined) return diagnose(reason, cause, keys);
  if (diagnosis?.remedy === undefined) return diagnosis ?? { cause: message };
  return { cause: diagnosis.cause, remedy: diagnosis.remedy.replace(keysAt(UPSTREAM, '').url, keys.url) };
}

const UPSTREAM = { key: 'upstream', url: '' };

/** Returns the cause and remedy for a connection error code. */
export function diagnose(reason: string | undefined, error: unknown, keys = keysAt(UPSTREAM, '')): Diagnosis {
  if (reason === undefined) return { cause: `the request could not be sent: ${errorText(error)}` };
  const known = KNOWN[reason] ?? alertIn(reason);
  if (known !== undefined) {
    const remedy = known.remedy && withKeys(known.remedy, keys);
    return { cause: `${known.cause}${detailsOf(reason, error)} (${reason})`, remedy };
  }
  if (!INVALID_HTTP.test(reason)) return { cause: reason };
  return {
    cause: `invalid HTTP (${reason})`,
    remedy: withKeys('check whether {url} should be {schemes}', keys),
  };
}

/** A certificate may have thousands of names. */
const MAX_NAMES_CHARS = 200;

function detailsOf(reason: string, error: unknown): string {
  const { message, cert } = (error ?? {}) as Partial<Error> & { cert?: { subjectaltname?: string } };
  const details = TELLING.includes(reason) ? message : cert?.subjectaltname?.slice(0, MAX_NAMES_CHARS);
  return details === undefined ? '' : `: ${details}`;
}

export function codeOf(error: unknown): string | undefined {
  const { code, name, message } = (error ?? {}) as { code?: unknown; name?: unknown; message?: unknown };
  // undici distinguishes unexpected interim responses by message only.
  if (code === 'UND_ERR_SOCKET' && message === 'bad upgrade') return 'HPE_UNREQUESTED: HTTP 101';
  if (code === 'UND_ERR_SOCKET' && message === 'bad response') return 'HPE_UNREQUESTED: HTTP 100';
  // undici adds up repeated lengths, and compares the sum with the body.
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return 'HPE_UNEXPECTED_CONTENT_LENGTH';
  if (typeof code === 'string') return code;
  if (name !== 'HTTPParserError') return undefined;
  // undici's parser sets no code for a refused header, nor for bytes that do not start like HTTP.
  return String(message).includes("can't be present with") ? 'HPE_INVALID_CONTENT_LENGTH' : 'HPE_NOT_HTTP';
}

export interface ServerKeys {
  /** Configuration key for the address. */
  url: string;
  schemes: string;
  /** Remedy for a certificate from an unknown authority. */
  trust: string;
  /** Configuration key for the certificate fingerprint. */
  pin?: string;
  /** Remedy for a missing client certificate. */
  client?: string;
  /** Remedy for an address that is usually not the one meant. */
  hint?: string;
}

/** Returns the keys for the server configured under `key`, such as `upstream`, or for a secondary of it. */
export function keysAt(server: { key: string; url: string }, url: string): ServerKeys {
  const { key } = server;
  return {
    url: url === server.url ? `${key}.url` : `${key}.secondaries`,
    schemes: 'http or https',
    trust: `set ${key}.caFile or ${key}.fingerprint`,
    pin: `${key}.fingerprint`,
    client: `set ${key}.clientCertificateFile and ${key}.clientKeyFile`,
    ...(/:2641$/.test(url) && { hint: 'port 2641 is usually the native protocol, and JSON on port 8000' }),
  };
}

/** Advice for servers whose certificates no key describes. */
export const PUBLIC_TRUST = {
  schemes: 'http or https',
  trust: 'name the PEM file of its authority in the variable NODE_EXTRA_CA_CERTS',
};

/** Returns the remedy for a `fetch` that found no connection to the server at the key `url`; undefined if none is known. */
export function fetchRemedy(error: unknown, url: string): string | undefined {
  const { cause } = (error ?? {}) as Partial<Error>;
  return codeOf(cause) && diagnose(codeOf(cause), cause, { ...PUBLIC_TRUST, url }).remedy;
}

/** Remedy for servers to which no key gives a client certificate. */
const WITHOUT_CLIENT = 'let the server accept connections without a client certificate';

/** Fills `{url}`, `{schemes}`, `{trust}`, `{pin}`, `{orPin}` and `{client}`, and adds the hint. */
const withKeys = (
  remedy: string,
  { url, schemes, trust, pin = '', client = WITHOUT_CLIENT, hint }: ServerKeys,
): string =>
  [remedy, ...(hint === undefined ? [] : [hint])]
    .join('; ')
    .replace('{url}', url)
    .replace('{schemes}', schemes)
    .replace('{trust}', trust)
    .replace('{pin}', pin)
    .replace('{client}', client)
    .replace('{orPin}', pin && `, or set ${pin}`);
