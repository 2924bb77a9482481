// The catalogue of the core's errors, and the error class. Table: config/troubleshooting.md.

interface ErrorDefinition {
  status: number;
  responseCode: number;
  title: string;
  /** Whether it rejects a request because of its client, before the Handle server is asked. */
  rejectsClient?: boolean | undefined;
}

export interface ErrorEntry extends ErrorDefinition {
  code: string;
}

/** Adds to each definition its key as the code. */
export const defineErrors = <Code extends string>(
  definitions: Record<Code, ErrorDefinition>,
): Readonly<Record<Code, ErrorEntry>> =>
  Object.fromEntries(
    Object.entries<ErrorDefinition>(definitions).map(([code, entry]) => [code, { code, ...entry }]),
  ) as Record<Code, ErrorEntry>;

/** The errors of the core; those of a plugin are in its `plugin.ts`. */
export const CATALOGUE = defineErrors({
  BAD_PATH: { status: 400, responseCode: 4, title: 'Invalid percent-encoding in the path' },
  BAD_PARAMETER: { status: 400, responseCode: 4, title: 'Invalid query parameter' },
  EMPTY_HANDLE: { status: 400, responseCode: 102, title: 'Empty handle invalid' },
  HANDLE_TOO_LONG: { status: 400, responseCode: 102, title: 'Handle longer than 2048 bytes' },
  BAD_REQUEST: { status: 400, responseCode: 4, title: 'Malformed HTTP request' },
  V2_BAD_BODY: { status: 400, responseCode: 4, title: 'Invalid list of values (ePIC v2)' },
  V2_INDEX_TAKEN: {
    status: 400,
    responseCode: 201,
    title: 'Index in use by a value the caller cannot read (ePIC v2)',
  },
  V2_REJECTED: { status: 400, responseCode: 202, title: 'The Handle server rejected the values (ePIC v2)' },
  V2_LOCKOUT: { status: 400, responseCode: 202, title: 'The write would lock the caller out (ePIC v2)' },
  NOT_RESPONSIBLE: { status: 400, responseCode: 301, title: 'No Handle server here serves this prefix' },
  V2_LOGIN_NEEDED: { status: 401, responseCode: 402, title: 'Login required (ePIC v2)' },
  UPSTREAM_READ_ONLY: {
    status: 403,
    responseCode: 7,
    title: 'Handles of this prefix can only be read here: its Handle server is configured as read-only',
  },
  NO_DELETE: { status: 403, responseCode: 400, title: 'Deletion is disabled: nodelete' },
  JSONP_WITH_LOGIN: { status: 403, responseCode: 400, title: 'JSONP is not available with credentials' },
  V2_FORBIDDEN: { status: 403, responseCode: 400, title: 'The Handle server denied the request (ePIC v2)' },
  V2_NO_DELETE: { status: 403, responseCode: 400, title: 'Deletion is disabled: nodelete (ePIC v2)' },
  V2_NOT_FOUND: { status: 404, responseCode: 100, title: 'No such handle or collection (ePIC v2)' },
  REDIRECT_NOT_FOUND: { status: 404, responseCode: 100, title: 'This handle does not exist' },
  REDIRECT_NOT_SERVED: { status: 404, responseCode: 301, title: 'This prefix is not served here' },
  REDIRECT_ALIAS_LOOP: { status: 404, responseCode: 100, title: 'Too many aliases or an alias loop' },
  UNKNOWN_ENDPOINT: { status: 404, responseCode: 4, title: 'Unknown HTTP API endpoint' },
  METHOD_NOT_ALLOWED: { status: 405, responseCode: 4, title: 'Method not allowed' },
  REQUEST_TIMEOUT: { status: 408, responseCode: 4, title: 'Timeout while receiving the request' },
  PRECONDITION_FAILED: { status: 412, responseCode: 4, title: 'Precondition failed' },
  BODY_TOO_LARGE: { status: 413, responseCode: 4, title: 'Request body too large' },
  REQUEST_LINE_TOO_LONG: { status: 414, responseCode: 4, title: 'Request line too long' },
  V2_NOT_JSON: { status: 415, responseCode: 4, title: 'JSON body required (ePIC v2)' },
  HEADERS_TOO_LARGE: { status: 431, responseCode: 4, title: 'Request headers too large' },
  UNKNOWN_METHOD: { status: 501, responseCode: 4, title: 'Unknown method' },
  V2_NOT_SUPPORTED: { status: 501, responseCode: 5, title: 'Listing or search not supported (ePIC v2)' },
  INTERNAL: { status: 500, responseCode: 2, title: 'Unexpected error in the proxy' },
  UPSTREAM_INVALID_RESPONSE: {
    status: 502,
    responseCode: 2,
    title: 'Invalid response from the Handle server',
  },
  UPSTREAM_FAILED: { status: 502, responseCode: 2, title: 'The Handle server reported an error' },
  REDIRECT_REFUSED: { status: 502, responseCode: 2, title: 'The Handle server refused the request' },
  UPSTREAM_UNREACHABLE: { status: 502, responseCode: 2, title: 'The Handle server is unreachable' },
  UPSTREAM_CONNECT_FAILED: {
    status: 502,
    responseCode: 2,
    title: 'The connection to the Handle server failed',
  },
  UPSTREAM_BACKOFF: {
    status: 503,
    responseCode: 2,
    title: 'The Handle server is not contacted after repeated failures',
  },
  UPSTREAM_BUSY: { status: 503, responseCode: 3, title: 'The Handle server is busy or read-only' },
  OVERLOADED: { status: 503, responseCode: 3, title: 'Too many requests for the Handle server' },
  INVALIDATION_UNCONFIRMED: {
    status: 503,
    responseCode: 2,
    title: 'The invalidation cannot be confirmed on every instance',
  },
  LOCK_UNAVAILABLE: { status: 503, responseCode: 2, title: 'The handle cannot be locked on every instance' },
  CONCURRENT_MODIFICATION: { status: 503, responseCode: 3, title: 'Concurrent modification of the handle' },
  ADMIN_BUSY: { status: 503, responseCode: 3, title: 'Too many viewers' },
  UPSTREAM_TIMEOUT: { status: 504, responseCode: 2, title: 'Timeout of the Handle server' },
  NOT_CACHED: { status: 504, responseCode: 2, title: 'Not in the cache, and only-if-cached was requested' },
  LOOP_DETECTED: { status: 508, responseCode: 2, title: 'The request came back to this proxy' },
});

export type ErrorCode = keyof typeof CATALOGUE;

/** An error of the core by its code, or that of a plugin. */
export type ErrorKind = ErrorCode | ErrorEntry;

/** Errors without `code`, in a Handle server's format (recordings "unknown: …", "empty handle: …"). */
const OF_HANDLE_SERVER: ReadonlySet<string> = new Set<ErrorCode>([
  'EMPTY_HANDLE',
  'NOT_RESPONSIBLE',
  'UNKNOWN_ENDPOINT',
  'UNKNOWN_METHOD',
]);

export const isOfHandleServer = ({ code }: ServiceError): boolean => OF_HANDLE_SERVER.has(code);

/** The error response of a Handle server, sent to the client if no server has a better response. */
export interface UpstreamAnswer {
  status: number;
  /** Its JSON members except `handle`, which is added in each caller's spelling if `namesHandle` is set. */
  members: Record<string, unknown>;
  namesHandle: boolean;
  retryAfter?: string | undefined;
  /** Value of `WWW-Authenticate`. */
  challenge?: string | undefined;
}

/** Cause of an upstream failure, and remedy, for the log and the status page, never for clients. */
export interface Diagnosis {
  cause: string;
  remedy?: string | undefined;
}

/** Default Retry-After of temporary errors. */
const RETRY_AFTER_SECONDS = 5;

/** Statuses after which the request may succeed later (RFC 9110 §15.6.3 to §15.6.5). */
const TEMPORARY_STATUSES: readonly number[] = [502, 503, 504];

interface ErrorDetails {
  detail?: string | undefined;
  diagnosis?: Diagnosis | undefined;
  /** Replaces title and detail if the Handle server has its own text for the error. */
  message?: string | undefined;
  cause?: unknown;
  /** Time until a retry makes sense; `never` for a write that may have taken effect. */
  retryAfterMs?: number | 'never' | undefined;
  /** Response code of the Handle server, if it is more specific than the catalogue's. */
  responseCode?: number | undefined;
  /** Allowed methods, which a 405 must list (RFC 9110 §15.5.6). */
  allow?: readonly string[];
  upstreamAnswer?: UpstreamAnswer | undefined;
  upstreamStatus?: number | undefined;
}

/** `message` and `detail` are for the client, `diagnosis` and `cause` for the operator. */
export class ServiceError extends Error {
  readonly code: string;
  readonly title: string;
  readonly status: number;
  readonly responseCode: number;
  readonly rejectsClient: boolean | undefined;
  /** `message` without the title. */
  readonly detail: string | undefined;
  readonly diagnosis: Diagnosis | undefined;
  readonly allow: readonly string[] | undefined;
  readonly upstreamAnswer: UpstreamAnswer | undefined;
  /** HTTP status of the upstream response that caused the error. */
  readonly upstreamStatus: number | undefined;
  /** Value of Retry-After, present in every temporary error unless a retry is unsafe. */
  readonly retryAfterSeconds: number | undefined;

  constructor(kind: ErrorKind, details: ErrorDetails = {}) {
    const { detail, message, cause, upstreamAnswer, upstreamStatus, retryAfterMs } = details;
    const { code, title, status, responseCode, rejectsClient } = entryOf(kind);
    super(message ?? (detail === undefined ? title : `${title}: ${detail}`), { cause });
    this.name = 'ServiceError';
    this.code = code;
    this.title = title;
    this.status = status;
    this.responseCode = details.responseCode ?? responseCode;
    this.rejectsClient = rejectsClient;
    this.detail = detail ?? withoutTitle(message, title);
    this.diagnosis = details.diagnosis;
    this.allow = details.allow;
    this.upstreamAnswer = upstreamAnswer;
    this.upstreamStatus = upstreamStatus ?? upstreamAnswer?.status;
    this.retryAfterSeconds = retryAfterSeconds(upstreamAnswer?.status ?? status, retryAfterMs);
  }
}

const entryOf = (kind: ErrorKind): ErrorEntry => (typeof kind === 'string' ? CATALOGUE[kind] : kind);

/** Removes the title from a message that was copied from an error with the same code. */
function withoutTitle(message: string | undefined, title: string): string | undefined {
  if (message === title) return undefined;
  return message?.startsWith(`${title}: `) ? message.slice(title.length + 2) : message;
}

function retryAfterSeconds(status: number, retryAfterMs: number | 'never' | undefined): number | undefined {
  if (retryAfterMs === 'never') return undefined;
  if (retryAfterMs !== undefined) return Math.max(1, Math.ceil(retryAfterMs / 1000));
  return TEMPORARY_STATUSES.includes(status) ? RETRY_AFTER_SECONDS : undefined;
}

/** Returns the message of anything that was thrown. */
export const errorText = (error: unknown): string => (error instanceof Error ? error.message : String(error));
