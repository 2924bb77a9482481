// A response of a server as it arrived, its JSON, and the error for a response that no Handle server would give.
import { ServiceError } from '../errors.js';
import { foldHandle } from '../handle/handle.js';
import { NestingError, parseJson } from '../handle/json.js';
import { promisify } from 'node:util';
import zlib from 'node:zlib';

export interface UpstreamResponse {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

/** The members of Handle JSON. */
export type HandleJson = Record<string, unknown> & { responseCode: number };

/** A header by its name in lower case; several lines of it are one list (RFC 9110 §5.3). */
export function headerOf({ headers }: Pick<UpstreamResponse, 'headers'>, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}

const NO_HANDLE_SERVER =
  'check that a Handle server answers at this address over HTTP, not a gateway or another service';

/** @throws ServiceError UPSTREAM_INVALID_RESPONSE when the body is not Handle JSON */
export function parseMembers(response: UpstreamResponse): HandleJson {
  let parsed: unknown;
  try {
    parsed = parseJson(response.body);
  } catch (cause) {
    const reason = cause instanceof NestingError ? cause.message : 'no JSON';
    throw invalidResponse(reason, response, { cause, remedy: NO_HANDLE_SERVER });
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw invalidResponse('no JSON object', response, { remedy: NO_HANDLE_SERVER });
  }
  const members = parsed as Partial<HandleJson>;
  if (!Number.isInteger(members.responseCode)) {
    throw invalidResponse('no response code', response, { remedy: NO_HANDLE_SERVER });
  }
  return members as HandleJson;
}

/** A response about another handle would be cached under the wrong key, or be taken for the result of this write. */
export function assertHandle(
  response: UpstreamResponse,
  { handle: named }: HandleJson,
  { handle, caseSensitive }: { handle: string; caseSensitive: boolean },
): void {
  if (named === undefined || named === handle) return;
  const fold = (text: string): string => foldHandle(text, caseSensitive);
  if (typeof named !== 'string' || fold(named) !== fold(handle)) {
    throw invalidResponse('a response about another handle', response);
  }
}

export function bodyTooLarge(status: number, maxBodyBytes: number): ServiceError {
  const cause = `a response of more than ${maxBodyBytes} bytes (HTTP ${status})`;
  const diagnosis = { cause, remedy: 'see upstream.maxBodySize' };
  return new ServiceError('UPSTREAM_INVALID_RESPONSE', { diagnosis, upstreamStatus: status });
}

/** The error for a response that no Handle server would give: describes it without giving away any value. */
export function invalidResponse(
  reason: string,
  response: UpstreamResponse,
  { cause, remedy }: { cause?: unknown; remedy?: string } = {},
): ServiceError {
  const { status, body } = response;
  const contentType = printable(headerOf(response, 'content-type') ?? 'no content type');
  const server = headerOf(response, 'server');
  const from = server === undefined ? [] : [`server ${printable(server)}`];
  const summary = [`HTTP ${status}`, contentType, ...from, `${body.length} characters`].join(', ');
  const text = quotableText(body);
  const quote = text === '' ? '' : `, "${text}"`;
  return new ServiceError('UPSTREAM_INVALID_RESPONSE', {
    diagnosis: {
      cause: `${reason} (${summary}${quote})`,
      remedy: isRedirect(status) ? 'redirects are not followed: set upstream.url to the target' : remedy,
    },
    upstreamStatus: status,
    cause,
  });
}

/** RFC 6585 §4, RFC 9110 §15.6.4 */
export const isTooBusy = (status: number): boolean => status === 429 || status === 503;

/** 300 is how a Handle server sends a referral. */
export const isRedirect = (status: number): boolean => status > 300 && status < 400 && status !== 304;

const QUOTED_CHARACTERS = 80;

/** Enough of a page to find 80 characters of text between its tags. */
const SEARCHED_CHARACTERS = 2000;

/** The visible text of a page. Nothing from the first bracket on: a broken record may hold private values. */
function quotableText(body: string): string {
  const [beforeJson = ''] = body.slice(0, SEARCHED_CHARACTERS).split(/[{[]/, 1);
  return printable(beforeJson.replace(/<[^<>]*>/g, ' '));
}

const printable = (text: string): string =>
  text
    .replace(/[\s\p{C}]+/gu, ' ')
    .trim()
    .slice(0, QUOTED_CHARACTERS);

/** A body in more codings than this is not decompressed: each could be a bomb inside a bomb. */
const MAX_CODINGS = 5;

const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH } = zlib.constants;

type Decode = (body: Buffer, maxOutputLength: number) => Promise<Buffer>;

const gunzip = promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.gunzip);
const inflate = promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.inflate);
const brotli = promisify<Buffer, zlib.BrotliOptions, Buffer>(zlib.brotliDecompress);

// Some servers leave out the last bytes: like browsers, these accept what there is.
const ungzip: Decode = (body, maxOutputLength) =>
  gunzip(body, { finishFlush: Z_SYNC_FLUSH, maxOutputLength });

/** A Map: the names come from outside, and an object would know `constructor` too. */
const DECODERS = new Map<string, Decode>([
  ['gzip', ungzip],
  ['x-gzip', ungzip],
  ['deflate', (body, maxOutputLength) => inflate(body, { finishFlush: Z_SYNC_FLUSH, maxOutputLength })],
  ['br', (body, maxOutputLength) => brotli(body, { finishFlush: BROTLI_OPERATION_FLUSH, maxOutputLength })],
]);

/** A response whose body is as it arrived. */
export interface EncodedResponse extends Omit<UpstreamResponse, 'body'> {
  body: Buffer;
}

const CONTENT_ENCODING = 'content-encoding';

export const isEncoded = ({ headers, body }: EncodedResponse): boolean =>
  headers[CONTENT_ENCODING] !== undefined && body.length > 0;

/**
 * The body without its content codings; as it is where one of them is unknown.
 *
 * @throws ServiceError UPSTREAM_INVALID_RESPONSE as soon as more than `maxBodyBytes` come out, or an error of zlib
 */
export async function decodeBody(response: EncodedResponse, maxBodyBytes: number): Promise<Buffer> {
  const { status, body } = response;
  const codings = headerOf(response, CONTENT_ENCODING) ?? '';
  const decoders = codings
    .toLowerCase()
    .split(',')
    .map((name) => DECODERS.get(name.trim()))
    .reverse();
  if (decoders.length > MAX_CODINGS || !decoders.every((decode) => decode !== undefined)) return body;
  let decoded = body;
  try {
    for (const decode of decoders) decoded = await decode(decoded, maxBodyBytes);
  } catch (error) {
    const isTooLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    throw isTooLarge ? bodyTooLarge(status, maxBodyBytes) : error;
  }
  return decoded;
}
