// HTTP encoding: parses request targets, and writes JSON with callback, challenges, CORS and gzip.
import type { IncomingHttpHeaders } from 'node:http';
import { gzipSync } from 'node:zlib';
import { indentJson, writeJson } from '../handle/json.js';
import { RESPONSE_CODE } from '../handle/outcome.js';
import type { ValueReference } from '../handle/value.js';
import { runToEnd } from '../time-slicer.js';
import { javaException, readJson } from './java-input.js';
import type { SessionStore } from './login.js';
import type { RecordStore, Rights } from './store.js';

type WireHeader = [name: string, value: string];

interface WireContent {
  headers: WireHeader[];
  body: Buffer;
}

/** A serialised reply. For HEAD, `body` determines only the length. */
export interface WireReply extends WireContent {
  status: number;
}

const CORS_METHODS = 'GET,POST,HEAD,PUT,DELETE';
const CORS_HEADERS = 'X-Requested-With,Authorization,Origin,Accept,Content-Type';
const MIN_GZIP_BYTES = 32;

export function toWire(
  { reply, parameters }: Answered,
  request: DemoRequest,
  sessions: SessionStore,
): WireReply {
  const isRefusedHere = reply.challenge !== undefined && !request.secure;
  const status = isRefusedHere ? 403 : reply.status;
  const challenges = reply.challenge && request.secure ? challengeHeaders(reply.challenge, sessions) : [];
  const content = withEncoding(contentOf(reply, parameters), status, request);
  const headers = [...challenges, ...(reply.headers ?? []), ...content.headers];
  if (status !== 204) headers.push(['Content-Length', String(content.body.length)]);
  return { status, headers: [...corsHeaders(request.headers, headers), ...headers], body: content.body };
}

/** Compresses successes only. A short body still gets `Vary`. */
function withEncoding(content: WireContent, status: number, { method, headers }: DemoRequest): WireContent {
  const { length } = content.body;
  if (method === 'HEAD' || status >= 300 || length === 0) return content;
  const offered: WireHeader[] = [...content.headers, ['Vary', 'Accept-Encoding']];
  const isWanted = /\bgzip\b/.test(headers['accept-encoding'] ?? '') && length >= MIN_GZIP_BYTES;
  if (!isWanted) return { headers: offered, body: content.body };
  return { headers: [...offered, ['Content-Encoding', 'gzip']], body: gzipSync(content.body) };
}

/** Answers a CORS preflight before any other step; without CORS headers if it requests too much. */
export function preflight({ method, headers }: DemoRequest): WireReply | undefined {
  const wanted = headers['access-control-request-method'];
  if (method !== 'OPTIONS' || headers.origin === undefined || wanted === undefined) return undefined;
  const asked = (headers['access-control-request-headers'] ?? '')
    .split(',')
    .filter((name) => name.trim() !== '');
  const known = CORS_HEADERS.toLowerCase().split(',');
  const isAllowed =
    CORS_METHODS.split(',').includes(wanted) &&
    asked.every((name) => known.includes(name.trim().toLowerCase()));
  const granted: WireHeader[] = [
    ['Access-Control-Allow-Origin', headers.origin],
    ['Access-Control-Max-Age', '86400'],
    ['Access-Control-Allow-Methods', CORS_METHODS],
    ['Access-Control-Allow-Headers', CORS_HEADERS],
  ];
  return {
    status: 200,
    headers: [...(isAllowed ? granted : []), ['Content-Length', '0']],
    body: Buffer.alloc(0),
  };
}

function contentOf({ json, html, charset }: DemoReply, parameters: URLSearchParams): WireContent {
  if (html !== undefined) return content(`text/html;charset=${charset ?? 'utf-8'}`, html);
  if (json === undefined) return { headers: [], body: Buffer.alloc(0) };
  const compact = writeJson(json);
  const text = isOn(parameters.get('pretty')) ? runToEnd(indentJson(compact)) : compact;
  const callback = parameters.get('callback');
  if (callback === null) return content('application/json;charset=utf-8', text);
  return content('application/javascript;charset=utf-8', `${callbackName(callback)}(${text});`);
}

const content = (type: string, text: string): WireContent => ({
  headers: [['Content-Type', type]],
  body: Buffer.from(text),
});

const callbackName = (callback: string): string =>
  callback.replace(/[^A-Za-z0-9_$\u00a0-\uffff]/g, '_').replace(/^\d/, '_');

function challengeHeaders({ basic, error, session }: Challenge, sessions: SessionStore): WireHeader[] {
  const { sessionId, nonce } = session ?? sessions.create();
  const reason = error === undefined ? '' : `, error="${error}"`;
  const handle = `Handle sessionId="${sessionId}", nonce="${nonce}"${reason}`;
  return [
    ...(basic ? [['WWW-Authenticate', 'Basic realm="handle"'] satisfies WireHeader] : []),
    ['WWW-Authenticate', handle],
  ];
}

const SIMPLE_HEADERS = [
  'content-type',
  'content-length',
  'vary',
  'expires',
  'content-encoding',
  'connection',
];

function corsHeaders({ origin }: IncomingHttpHeaders, headers: WireHeader[]): WireHeader[] {
  if (origin === undefined) return [];
  const names = new Set(headers.map(([name]) => name));
  const exposed = [...names].filter((name) => !SIMPLE_HEADERS.includes(name.toLowerCase()));
  return [
    ['Access-Control-Allow-Origin', origin],
    ['Vary', 'Origin'],
    ['Access-Control-Expose-Headers', [...exposed, 'Content-Length'].join(',')],
  ];
}

export interface DemoTarget {
  path: string;
  query: string;
}

/** Splits a raw target at its first `?`, without scheme and host of an absolute form (RFC 9112 §3.2.2). */
export function splitTarget(target: string): DemoTarget {
  const origin = target.replace(/^https?:\/\/[^/?]*/i, '');
  const at = origin.indexOf('?');
  return at === -1 ? { path: origin, query: '' } : { path: origin.slice(0, at), query: origin.slice(at + 1) };
}

/** Decodes the handle in a raw path, after `/api/handles` or at the root. Drops one leading slash. */
export function decodeHandle(rawPath: string): string {
  const raw = rawPath.startsWith('/') ? rawPath.slice(1) : rawPath;
  if (raw === '/') return ''; // No handle (recording "resolve: malformed, leading slash only").
  const bytes = raw.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

/** Whether Jetty 9 rejects the path before any servlet sees it. */
export const hasBadEscape = (path: string): boolean => /%(?![0-9a-f]{2})|%00/i.test(path);

/** Parses the query parameters, and for POST the parameters of a form or JSON object in the body. */
export function requestParameters(
  query: string,
  post?: { contentType: string; body: Buffer },
): URLSearchParams {
  const parameters = new URLSearchParams(Buffer.from(query, 'latin1').toString('utf8'));
  if (post?.contentType.startsWith('application/x-www-form-urlencoded')) {
    for (const [name, value] of new URLSearchParams(post.body.toString('utf8')))
      parameters.append(name, value);
  }
  if (post?.contentType.startsWith('application/json')) appendJson(parameters, post.body);
  return parameters;
}

function appendJson(parameters: URLSearchParams, body: Buffer): void {
  const json = readJson(body.toString('utf8'));
  if (json === null || typeof json !== 'object' || Array.isArray(json))
    throw javaException('Expected JSON object');
  for (const [name, value] of Object.entries(json)) {
    for (const one of Array.isArray(value) ? value : [value]) parameters.append(name, String(one));
  }
}

/** Whether a GET parameter is true: it is present and empty, `yes` or `true`. */
export function isOn(value: string | null): boolean {
  return value !== null && /^(|yes|true)$/i.test(value);
}

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

interface Challenge {
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
  handle: string;
  parameters: URLSearchParams;
  contentType: string | undefined;
  body: Buffer;
  identity: ValueReference | undefined;
}

export interface World {
  store: RecordStore;
  rights: Rights;
  newSuffix: () => string;
}

export interface SeenRequest {
  method: string;
  target: string;
  headers: IncomingHttpHeaders;
}

/** A request with its body, not yet parsed. */
export interface DemoRequest extends SeenRequest {
  body: Buffer;
  /** Whether the request arrived over TLS, or on a listener that is treated as secure. */
  secure: boolean;
}

/** A reply, and the query parameters that affect its format (callback, pretty). */
export interface Answered {
  reply: DemoReply;
  parameters: URLSearchParams;
}
