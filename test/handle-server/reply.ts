// Requests and replies of the record interface, and errors with the texts of the real server.
import { RESPONSE_CODE } from '../../src/handle/response-codes.js';
import type { ValueReference } from '../../src/handle/value.js';
import type { RecordStore, Rights } from './store.js';

/** An answer before it is written: JSON with its callback and indent still to come, a page, or nothing. */
export interface Reply {
  status: number;
  json?: Record<string, unknown>;
  html?: string;
  /** Charset of a page; Jetty's own error pages use another than the servlets. */
  charset?: string;
  headers?: [name: string, value: string][];
  /** The caller has to log in: the server adds its challenges, or makes it 403 over plain http. */
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

/** An error response; an empty `handle` is left out, as the server does. */
export function refuse(code: number, { message, handle }: { message?: string; handle?: string } = {}): Reply {
  return {
    status: STATUS_BY_CODE.get(code) ?? 500,
    json: { responseCode: code, ...(message !== undefined && { message }), ...(handle && { handle }) },
    ...(code === RESPONSE_CODE.authenticationNeeded && { challenge: { basic: true } }),
  };
}

/** A success with the members of the operation, in their order. */
export function succeed(members: Record<string, unknown>, status = 200): Reply {
  return { status, json: { responseCode: RESPONSE_CODE.success, ...members } };
}

export const notHere = (handle: string): Reply =>
  refuse(RESPONSE_CODE.notResponsible, { message: "That prefix doesn't live here", handle });

/** An error that is reported as a protocol error with its own status. */
export function protocolError(status: number, message: string): Reply {
  return { status, json: { responseCode: RESPONSE_CODE.protocolError, message } };
}

/** Page of the servlet container itself, as Jetty 9 writes it. */
export function containerError(status: number, reason: string): Reply {
  const html = `<h1>Bad Message ${status}</h1><pre>reason: ${reason}</pre>`;
  return { status, html, charset: 'iso-8859-1', headers: [['Connection', 'close']] };
}

/** Becomes HTTP 400 with `{"responseCode":4,"message":…}`; never leaves the demo server. */
export class BadInput extends Error {
  override readonly name = 'BadInput';
}

export const javaException = (text: string): BadInput => new BadInput(`java.lang.Exception: ${text}`);

export const numberFormat = (text: string): BadInput =>
  new BadInput(`java.lang.NumberFormatException: For input string: "${text}"`);

/** A value that Gson's adapter refused: the cause in a JsonParseException. */
export const badValue = (cause: string): BadInput =>
  new BadInput(`com.google.gson.JsonParseException: ${cause}`);

/** Reads an integer as Java's `Integer.parseInt` does: a sign and digits, 32 bits, nothing else. */
export function parseJavaInt(text: string): number {
  const value = Number(text);
  if (!/^[+-]?\d+$/.test(text) || value !== (value | 0)) throw numberFormat(text);
  return value;
}

/** The text of a JSON string, number or boolean, as Gson gives it; anything else is refused. */
export function primitiveText(json: unknown): string {
  if (typeof json === 'string' || typeof json === 'number' || typeof json === 'boolean') return String(json);
  throw badValue('java.lang.UnsupportedOperationException: JsonObject');
}

/** A request whose caller is known. */
export interface Call {
  method: string;
  /** The handle as this request spells it. */
  handle: string;
  parameters: URLSearchParams;
  contentType: string | undefined;
  body: Buffer;
  /** Who has logged in, if anybody. */
  identity: ValueReference | undefined;
}

/** What the operations work on. */
export interface World {
  store: RecordStore;
  rights: Rights;
  newSuffix: () => string;
}
