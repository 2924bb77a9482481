// Sends the commands' HTTP requests to a running proxy and its admin listener.
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import { Readable } from 'node:stream';
import { tryDecode } from '../handle/bytes.js';
import { streamLines } from '../handle/streams.js';
import { EXIT, Failure } from './terminal.js';

export interface AdminOptions {
  admin: string;
}

/** Maximum length of a response that is not an export; reports and limited networks take 2 MiB. */
const MAX_BODY_BYTES = 16 * 1024 ** 2;
/** Maximum length of an error, which is printed. */
const MAX_ERROR_BYTES = 16 * 1024;
/** Maximum length of a record, also as a line of an export, of a batch or of a page of a list. */
const MAX_TEXT_BYTES = 64 * 1024 ** 2;
/** Maximum time for a response, as in `fetch`. A purge may wait for other instances. */
export const MAX_WAIT_MS = 5 * 60_000;

/** Returns the JSON object of a response, which has the member. @throws Failure for any other response */
export async function askAdmin(
  options: AdminOptions,
  { path, member, ...call }: { path: string; member: string } & Pick<AdminCall, 'body' | 'signal'>,
): Promise<unknown> {
  const text = await readText(await callAdmin(options, path, call), path, MAX_BODY_BYTES);
  const found: unknown = tryDecode(JSON.parse, text);
  if (typeof found === 'object' && found !== null && member in found) return found;
  throw foreignResponse(options, path);
}

/** The failure for a response of another program. */
export const foreignResponse = ({ admin }: AdminOptions, path: string): Failure =>
  new Failure(`${admin}${path}: this is not the response of an admin listener; check --admin or ADMIN_URL`);

export class TooLong extends Failure {}

type Pieces = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** Reads a body to its end, or until it has more than `maxBytes`. */
export async function readBytes(body: Pieces, maxBytes: number): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > maxBytes) break;
  }
  return Buffer.concat(pieces);
}

/** @throws Failure for a response that is cut or too long */
async function readText(body: Pieces, path: string, maxBytes: number): Promise<string> {
  try {
    const bytes = await readBytes(body, maxBytes);
    if (bytes.length > maxBytes) throw new TooLong(`it has more than ${maxBytes} bytes`);
    return bytes.toString();
  } catch (error) {
    const Kind = error instanceof TooLong ? TooLong : Failure;
    throw new Kind(`${path}: the response cannot be read: ${failureReason(error)}`);
  }
}

interface AdminCall {
  body?: string | undefined;
  method?: string;
  /** Whether `waitMs` limits a success until its headers and between its data, because it may be long. */
  isStream?: boolean;
  waitMs?: number;
  signal?: AbortSignal | undefined;
}

/**
 * Sends a POST if `body` is given, otherwise a GET, unless `method` is given; over node:http, because fetch does not
 * expose trailers. The caller reads the response to its end. @throws Failure for a non-2xx or missing response
 */
export async function callAdmin(
  { admin }: AdminOptions,
  path: string,
  call: AdminCall = {},
): Promise<IncomingMessage> {
  const response = await openResponse(`${admin}${path}`, call);
  if (isSuccess(response)) return response;
  const { statusCode = 0 } = response;
  const text = await readText(response, path, MAX_ERROR_BYTES).catch(() => undefined);
  if (statusCode === 401) throw tokenFailure();
  const at = `${path}: status ${statusCode}`;
  const reason = text === undefined ? 'the response cannot be read' : reasonIn(text);
  throw reason === undefined ? foreignResponse({ admin }, at) : new Failure(`${at}: ${reason}`);
}

/** Requests the records of a prefix. @throws Failure as `callAdmin` does, and for the response of another program */
export async function callExport(options: AdminOptions, prefix: string): Promise<IncomingMessage> {
  const path = `/export?prefix=${encodeURIComponent(prefix)}`;
  const response = await callAdmin(options, path, { isStream: true });
  if (response.headers['content-type']?.startsWith('application/x-ndjson') === true) return response;
  response.destroy();
  throw foreignResponse(options, path);
}

/** Yields the lines of an export. @throws Error for a line that is cut off or too long */
export async function* streamExport(response: IncomingMessage): AsyncGenerator<string> {
  let last = '{}';
  for await (const line of streamLines(response, { maxChars: MAX_TEXT_BYTES })) yield (last = line);
  // Without chunks, as over HTTP/1.0, a response that breaks off ends like a complete one.
  if (tryDecode(JSON.parse, last) === undefined) throw new Error('the last line is cut off');
}

const isSuccess = ({ statusCode = 0 }: IncomingMessage): boolean => statusCode >= 200 && statusCode < 300;

function openResponse(
  url: string,
  { body, method, isStream = false, waitMs = MAX_WAIT_MS, signal }: AdminCall,
): Promise<IncomingMessage> {
  const { request } = url.startsWith('https:') ? https : http;
  const token = adminToken();
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        'Content-Type': 'application/json',
        ...(token !== '' && { Authorization: `Bearer ${token}` }),
      },
      signal,
    });
    let awaited: ClientRequest | IncomingMessage = sent;
    // The timeout of the socket would start again with each byte.
    const timer = setTimeout(
      () => awaited.destroy(new Error(`no complete response within ${waitMs / 1000} s`)),
      waitMs,
    );
    const stop = (): void => clearTimeout(timer);
    sent.once('response', (response) => {
      awaited = response;
      if (isStream && isSuccess(response)) {
        stop();
        limitSilence(response, waitMs);
      }
      resolve(response);
    });
    sent.once('error', (error) => reject(unreachable(url, error)));
    sent.once('close', stop);
    sent.end(body);
  });
}

/** Ends a response without data for `waitMs`, unless its reader is behind. */
function limitSilence(response: IncomingMessage, waitMs: number): void {
  response.socket.setTimeout(waitMs, () => {
    if (response.readableLength > 0 || response.complete) limitSilence(response, waitMs);
    else response.destroy(new Error(`no data within ${waitMs / 1000} s`));
  });
}

const adminToken = (): string => process.env['ADMIN_TOKEN'] ?? '';

const tokenFailure = (): Failure =>
  adminToken() === ''
    ? new Failure(
        'The admin listener needs a token: set ADMIN_TOKEN to the value of admin.token.',
        EXIT.usage,
      )
    : new Failure('The admin listener does not accept the token in ADMIN_TOKEN.');

/** Formats problem JSON (RFC 9457) as title, detail and code; undefined for any other body. */
function reasonIn(body: string): string | undefined {
  const { title, detail, code } = (tryDecode(JSON.parse, body) ?? {}) as Record<string, unknown>;
  if (typeof title !== 'string' || typeof code !== 'string') return undefined;
  return `${typeof detail === 'string' ? `${title}: ${detail}` : title} (${code})`;
}

/** Requests a text of the public listener. @throws Failure unless it arrives whole, in time and in bounds */
export async function fetchText(
  url: string,
  init: RequestInit = {},
  waitMs = MAX_WAIT_MS,
): Promise<{ response: Response; text: string }> {
  // Also the body has to arrive within this time.
  const signal = AbortSignal.timeout(waitMs);
  const response = await fetch(url, { ...init, signal }).catch((error: unknown) => {
    throw unreachable(url, error);
  });
  return { response, text: await readText(streamBody(response, signal), url, MAX_TEXT_BYTES) };
}

/** Streams a body until the signal is aborted, to which `fetch` may not listen once a response has begun. */
export const streamBody = ({ body }: Response, signal: AbortSignal): Pieces =>
  body === null ? [] : (Readable.fromWeb(body, { signal }) as AsyncIterable<Uint8Array>);

const unreachable = (url: string, error: unknown): Failure =>
  new Failure(`cannot reach ${url}: ${failureReason(error)}`);

/** Returns the innermost message, because `fetch` itself reports only "fetch failed"; for a 407, its cause has none. */
export function failureReason(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return failureReason(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return (error.cause === undefined ? '' : failureReason(error.cause)) || error.message;
}
