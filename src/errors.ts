// The catalogue of every error this service can answer by itself, and the one class that carries them.

/** HTTP status, Handle response code (record interface) and title of each failure. */
export const CATALOGUE = {
  BAD_PATH: { status: 400, responseCode: 4, title: 'The path is not a percent-encoded handle' },
  BAD_PARAMETER: { status: 400, responseCode: 4, title: 'A query parameter has a value that is not allowed' },
  EMPTY_HANDLE: { status: 400, responseCode: 102, title: 'Empty handle invalid' },
  HANDLE_TOO_LONG: { status: 400, responseCode: 102, title: 'A handle has at most 2048 bytes' },
  BAD_REQUEST: { status: 400, responseCode: 4, title: 'The request is not well-formed HTTP' },
  V2_BAD_BODY: { status: 400, responseCode: 4, title: 'The body is not a list of values (ePIC v2)' },
  ADMIN_BAD_BODY: { status: 400, responseCode: 4, title: 'The admin API cannot use this body' },
  V2_INDEX_TAKEN: {
    status: 400,
    responseCode: 201,
    title: 'An index is taken by a value that is not shown (ePIC v2)',
  },
  V2_REJECTED: { status: 400, responseCode: 202, title: 'The Handle server does not take this (ePIC v2)' },
  V2_NOT_OWNED: {
    status: 400,
    responseCode: 202,
    title: 'After this the caller could no longer change the handle (ePIC v2)',
  },
  ADMIN_TOKEN_NEEDED: { status: 401, responseCode: 402, title: 'The admin listener needs its token' },
  V2_LOGIN_NEEDED: { status: 401, responseCode: 402, title: 'A login is needed (ePIC v2)' },
  ADMIN_FOREIGN: {
    status: 403,
    responseCode: 400,
    title: 'The admin listener does not answer pages of other places',
  },
  V2_FORBIDDEN: { status: 403, responseCode: 400, title: 'The Handle server does not allow this (ePIC v2)' },
  V2_NO_DELETE: { status: 403, responseCode: 400, title: 'Deletion is deactivated: nodelete (ePIC v2)' },
  V2_NOT_FOUND: { status: 404, responseCode: 100, title: 'There is no such handle or collection (ePIC v2)' },
  REDIRECT_ALIAS_LOOP: {
    status: 404,
    responseCode: 100,
    title: 'The aliases of this handle are too many, or lead round in a circle',
  },
  UNKNOWN_ENDPOINT: { status: 404, responseCode: 4, title: 'Unknown HTTP API endpoint' },
  METHOD_REFUSED: { status: 405, responseCode: 4, title: 'This method is refused here' },
  REQUEST_TIMEOUT: { status: 408, responseCode: 4, title: 'The request was not sent in time' },
  CONDITION_FAILED: { status: 412, responseCode: 4, title: 'A precondition does not hold' },
  BODY_TOO_LARGE: { status: 413, responseCode: 4, title: 'The body is too large' },
  REQUEST_LINE_TOO_LONG: { status: 414, responseCode: 4, title: 'The request line is too long' },
  V2_NOT_JSON: { status: 415, responseCode: 4, title: 'The body has to be JSON (ePIC v2)' },
  RATE_LIMITED: { status: 429, responseCode: 3, title: 'Too many requests from this address' },
  HEADERS_TOO_LARGE: { status: 431, responseCode: 4, title: 'The request headers are too large' },
  UNKNOWN_METHOD: { status: 501, responseCode: 4, title: 'Unknown method' },
  V2_NOT_SUPPORTED: { status: 501, responseCode: 5, title: 'This cannot be listed or searched (ePIC v2)' },
  INTERNAL: { status: 500, responseCode: 2, title: 'Unexpected error in the proxy' },
  UPSTREAM_BAD_ANSWER: {
    status: 502,
    responseCode: 2,
    title: 'The Handle server gave an answer that is not one',
  },
  UPSTREAM_FAILED: { status: 502, responseCode: 2, title: 'The Handle server reported an error' },
  UPSTREAM_UNREACHABLE: { status: 502, responseCode: 2, title: 'The Handle server cannot be reached' },
  UPSTREAM_REFUSED: { status: 502, responseCode: 2, title: 'No connection to the Handle server' },
  UPSTREAM_RESTING: {
    status: 503,
    responseCode: 2,
    title: 'The Handle server failed repeatedly and is left alone for a moment',
  },
  UPSTREAM_BUSY: {
    status: 503,
    responseCode: 3,
    title: 'The Handle server is too busy or takes no writes at the moment',
  },
  OVERLOADED: {
    status: 503,
    responseCode: 3,
    title: 'More is asked than the Handle server can take at the moment',
  },
  NOT_CONFIRMED: {
    status: 503,
    responseCode: 2,
    title: 'The change cannot be confirmed on every instance of this proxy',
  },
  BUSY: { status: 503, responseCode: 3, title: 'The handle is being changed by others' },
  ADMIN_BUSY: { status: 503, responseCode: 3, title: 'Too many watch the status page' },
  UPSTREAM_TIMEOUT: { status: 504, responseCode: 2, title: 'The Handle server did not answer in time' },
  LOOP_DETECTED: { status: 508, responseCode: 2, title: 'upstream.url leads back to this proxy' },
} as const satisfies Record<string, { status: number; responseCode: number; title: string }>;

export type ErrorCode = keyof typeof CATALOGUE;

/** What a failing Handle server itself said, for a reader to whom nothing better can be given. */
export interface UpstreamAnswer {
  status: number;
  members: Record<string, unknown>;
  namesHandle: boolean;
  retryAfter?: string;
  /** `WWW-Authenticate`. */
  challenge?: string;
}

interface ErrorDetails {
  detail?: string;
  /** Replaces title and detail where a Handle server has a text of its own. */
  message?: string;
  cause?: unknown;
  /** When asking again makes sense. */
  retryAfterMs?: number | undefined;
  /** Where the Handle server gave one that says more than the catalogue's. */
  responseCode?: number | undefined;
  upstreamAnswer?: UpstreamAnswer;
  upstreamStatus?: number;
}

/** A failure of this service. `detail` is for the caller, `cause` for the log. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly responseCode: number;
  readonly upstreamAnswer: UpstreamAnswer | undefined;
  /** HTTP status of the answer that was none, or said this. */
  readonly upstreamStatus: number | undefined;
  /** For the header Retry-After. */
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, details: ErrorDetails = {}) {
    const { detail, message, cause, upstreamAnswer, upstreamStatus, retryAfterMs } = details;
    const { title, status, responseCode } = CATALOGUE[code];
    super(message ?? (detail === undefined ? title : `${title}: ${detail}`), { cause });
    this.name = 'ServiceError';
    this.code = code;
    this.status = status;
    this.responseCode = details.responseCode ?? responseCode;
    this.upstreamAnswer = upstreamAnswer;
    this.upstreamStatus = upstreamStatus ?? upstreamAnswer?.status;
    this.retryAfterSeconds =
      retryAfterMs === undefined ? undefined : Math.max(1, Math.ceil(retryAfterMs / 1000));
  }
}
