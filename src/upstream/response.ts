// Server responses: headers, content codings, JSON, and errors for invalid responses.
import { ServiceError } from '../errors.js';
import { createDecompressor, decompressBody, isCoding } from '../handle/streams.js';
import { foldHandle } from '../handle/handle.js';
import { parseTexts } from '../handle/json-texts.js';
import { JsonLimitError, parseJsonInSteps } from '../handle/json.js';
import { type Steps, runToEnd } from '../time-slicer.js';

export interface ResponseHead {
  status: number;
  headers: Record<string, string | string[] | undefined>;
}

export interface UpstreamResponse extends ResponseHead {
  body: string;
}

export type HandleJson = Record<string, unknown> & { responseCode: number };

/** Returns a header by its lower-case name; repeated lines are joined to a list (RFC 9110 §5.3). */
export function headerOf({ headers }: ResponseHead, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}

export const NO_HANDLE_SERVER =
  'check that upstream.url is the address of a Handle server over HTTP, not of a gateway or another service';

/** Parses a list of texts in a JSON body, in steps. @throws ServiceError UPSTREAM_INVALID_RESPONSE */
export function* parseList(response: UpstreamResponse, remedy: string): ReturnType<typeof parseTexts> {
  try {
    return yield* parseTexts(response.body);
  } catch (cause) {
    throw invalidJson(response, remedy, cause);
  }
}

function invalidJson(response: UpstreamResponse, remedy: string, cause: unknown): ServiceError {
  const reason = cause instanceof JsonLimitError ? cause.message : 'no JSON';
  return invalidResponse(reason, response, { cause, remedy });
}

/**
 * Maximum length of a parsed refusal, or of a parsed response to a write. A Handle server sends a few hundred
 * bytes, with a referral some thousands; a longer one comes from a different origin. Unlike a record, a refusal
 * is parsed, kept and rendered in one piece.
 */
export const MAX_ANSWER_BYTES = 64 * 1024;

/** Parses Handle JSON. @throws ServiceError UPSTREAM_INVALID_RESPONSE for any other body, or a refusal that is too long */
export const parseMembers = (response: UpstreamResponse): HandleJson =>
  runToEnd(parseMembersInSteps(response));

/** Does the same, in steps. */
export function* parseMembersInSteps(response: UpstreamResponse): Steps<HandleJson> {
  if (response.status >= 300 && response.body.length > MAX_ANSWER_BYTES)
    throw invalidResponse('a refusal that is too long', response, { remedy: NO_HANDLE_SERVER });
  let parsed: unknown;
  try {
    parsed = yield* parseJsonInSteps(response.body);
  } catch (cause) {
    throw invalidJson(response, NO_HANDLE_SERVER, cause);
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw invalidResponse('no JSON object', response, { remedy: NO_HANDLE_SERVER });
  const members = parsed as Partial<HandleJson>;
  if (!Number.isInteger(members.responseCode))
    throw invalidResponse('no response code', response, { remedy: NO_HANDLE_SERVER });
  return members as HandleJson;
}

/**
 * Asserts that a response names the requested handle, because a wrong record would be cached under its key.
 *
 * @throws ServiceError UPSTREAM_INVALID_RESPONSE
 */
export function assertHandle(
  response: UpstreamResponse,
  { handle: named }: HandleJson,
  { handle, caseSensitive }: { handle: string; caseSensitive: boolean },
): void {
  if (named === undefined || named === handle) return;
  const fold = (text: string): string => foldHandle(text, caseSensitive);
  if (typeof named !== 'string' || fold(named) !== fold(handle))
    throw invalidResponse('a response about another handle', response);
}

export function bodyTooLarge(status: number, maxBodyBytes: number): ServiceError {
  const cause = `a response of more than ${maxBodyBytes} bytes (HTTP ${status})`;
  const diagnosis = { cause, remedy: 'see upstream.maxRecordSize; a list may have 8 MiB' };
  return new ServiceError('UPSTREAM_INVALID_RESPONSE', { diagnosis, upstreamStatus: status });
}

/** Creates the error for an invalid response, with a description that reveals no values. */
export function invalidResponse(
  reason: string,
  response: UpstreamResponse,
  { cause, remedy }: { cause?: unknown; remedy?: string } = {},
): ServiceError {
  const { status } = response;
  return new ServiceError('UPSTREAM_INVALID_RESPONSE', {
    diagnosis: {
      cause: `${reason} (${describeResponse(response)})`,
      remedy: isRedirect(status) ? 'redirects are not followed: set upstream.url to the target' : remedy,
    },
    upstreamStatus: status,
    cause,
  });
}

/** Describes a response by its head, the target of a redirect, and the begin of a page, without values. */
export function describeResponse(response: UpstreamResponse): string {
  const { status, body } = response;
  const contentType = printablePart(headerOf(response, 'content-type') ?? 'no content type');
  const server = headerOf(response, 'server');
  const location = isRedirect(status) ? headerOf(response, 'location') : undefined;
  const text = quotableText(body);
  return [
    `HTTP ${status}`,
    contentType,
    ...(server === undefined ? [] : [`server ${printablePart(server)}`]),
    // A query may contain credentials.
    ...(location === undefined ? [] : [`to ${printablePart(location.split(/[?#]/, 1)[0] ?? '')}`]),
    `${body.length} characters`,
    ...(text === '' ? [] : [`"${text}"`]),
  ].join(', ');
}

/** Whether the status means an overloaded server (RFC 6585 §4, RFC 9110 §15.6.4). */
export const isTooBusy = (status: number): boolean => status === 429 || status === 503;

/** Whether the status is a redirect. Excludes 300, which Handle servers send with referrals. */
export const isRedirect = (status: number): boolean => status > 300 && status < 400 && status !== 304;

const QUOTED_CHARACTERS = 80;

/** Characters of an HTML page to search for quotable text between its tags. */
const SEARCHED_CHARACTERS = 2000;

/** Returns a page's visible text before the first bracket, because a broken record may contain private values. */
function quotableText(body: string): string {
  const [beforeJson = ''] = body.slice(0, SEARCHED_CHARACTERS).split(/[{[]/, 1);
  return printablePart(beforeJson.replace(/<[^<>]*>/g, ' '));
}

const printablePart = (text: string): string =>
  text
    .replace(/[\s\p{C}]+/gu, ' ')
    .trim()
    .slice(0, QUOTED_CHARACTERS);

/** Maximum codings to decode, because each could contain a decompression bomb. */
const MAX_CODINGS = 5;

/** A response with an undecoded body. */
export interface EncodedResponse extends ResponseHead {
  body: Buffer;
}

const CONTENT_ENCODING = 'content-encoding';

export const isEncoded = ({ headers }: EncodedResponse): boolean => headers[CONTENT_ENCODING] !== undefined;

/**
 * Decodes the content codings of a body; returns a body with an unknown coding unchanged.
 *
 * @throws ServiceError UPSTREAM_INVALID_RESPONSE as soon as the output exceeds `maxBodyBytes`;
 * a zlib error for corrupt input
 */
export async function decodeBody(response: EncodedResponse, maxBodyBytes: number): Promise<Buffer> {
  const { status, body } = response;
  const codings = headerOf(response, CONTENT_ENCODING) ?? '';
  const names = codings
    .toLowerCase()
    .split(',')
    .map((name) => name.trim().replace(/^x-(?=gzip$)/, ''))
    .reverse();
  if (names.length > MAX_CODINGS || !names.every(isCoding)) return body;
  const onSize = (size: number): void => {
    if (size > maxBodyBytes) throw bodyTooLarge(status, maxBodyBytes);
  };
  let decoded = body;
  for (const name of names) {
    // Some servers omit the last bytes.
    decoded = await decompressBody(decoded, createDecompressor(name, { acceptsCut: true }), onSize);
  }
  return decoded;
}
