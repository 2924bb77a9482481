// Requests and replies of the record interface, and errors with the texts of the real server.
import type { IncomingHttpHeaders } from 'node:http';
import { RESPONSE_CODE } from '../handle/outcome.js';
import type { ValueReference } from '../handle/value.js';
import type { RecordStore, Rights } from './store.js';

/** A response before serialisation: JSON without callback or indentation, a page, or an empty body. */
export interface DemoReply {
  status: number;
  json?: Record<string, unknown>;
  html?: string;
  /** Charset of a page. Jetty's error pages and the servlets use different charsets. */
  charset?: string;
  headers?: [name: string, value: string][];
  /** Set if the client must log in. The server adds its challenges, or responds with 403 over plain HTTP. */
  challenge?: Challenge;
}

/** The challenge of a 401. */
export interface Challenge {
  basic: boolean;
  error?: string | undefined;
  session?: { sessionId: string; nonce: string } | undefined;
}

const STATUS_BY_CODE = new Map<number, number>([
  [RESPONSE_CODE.protocolError, 400],
  [5, 501],
  [RESPONSE_CODE.handleNotFound, 404],
  [RESPONSE_CODE.handleExists, 409],
  [RESPONSE_CODE.invalidHandle, 400],
  [RESPONSE_CODE.valuesNotFound, 400],
  [RESPONSE_CODE.valueExists, 409],
  [RESPONSE_CODE.invalidValue, 400],
  [RESPONSE_CODE.notResponsible, 400],
  [RESPONSE_CODE.invalidAdmin, 403],
  [RESPONSE_CODE.insufficientPermissions, 403],
  [RESPONSE_CODE.authenticationNeeded, 401],
]);

/** Returns an error response. Like the real server, it omits an empty `handle`. */
export function refuseRequest(
  code: number,
  { message, handle }: { message?: string; handle?: string } = {},
): DemoReply {
  return {
    status: STATUS_BY_CODE.get(code) ?? 500,
    json: { responseCode: code, ...(message !== undefined && { message }), ...(handle && { handle }) },
    ...(code === RESPONSE_CODE.authenticationNeeded && { challenge: { basic: true } }),
  };
}

/** Returns a success with the operation's members in the given order. */
export function succeed(members: Record<string, unknown>, status = 200): DemoReply {
  return { status, json: { responseCode: RESPONSE_CODE.success, ...members } };
}

export const notHere = (handle: string): DemoReply =>
  refuseRequest(RESPONSE_CODE.notResponsible, { message: "That prefix doesn't live here", handle });

/** Returns a protocol error (code 4) with the given HTTP status. */
export function protocolReply(status: number, message: string): DemoReply {
  return { status, json: { responseCode: RESPONSE_CODE.protocolError, message } };
}

/** Returns an error page of the servlet container (Jetty 9). */
export function containerError(status: number, reason: string): DemoReply {
  const html = `<h1>Bad Message ${status}</h1><pre>reason: ${reason}</pre>`;
  return { status, html, charset: 'iso-8859-1', headers: [['Connection', 'close']] };
}

/** A request after its login has been checked; the caller may be anonymous. */
export interface DemoCall {
  method: string;
  /** The handle in the spelling of this request. */
  handle: string;
  parameters: URLSearchParams;
  contentType: string | undefined;
  body: Buffer;
  /** The authenticated user, if any. */
  identity: ValueReference | undefined;
}

/** Server state shared by all operations. */
export interface World {
  store: RecordStore;
  rights: Rights;
  newSuffix: () => string;
}

/** A request with its body, not yet parsed. */
export interface DemoRequest {
  method: string;
  target: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  /** Whether the request arrived over TLS, or on a listener that is treated as secure. */
  secure: boolean;
}

/** A reply, and the query parameters that affect its format (callback, pretty). */
export interface Answered {
  reply: DemoReply;
  parameters: URLSearchParams;
}
