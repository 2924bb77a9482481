// Why a request to any interface is refused, and the check of paths that are forwarded as they came.
import type { IncomingMessage } from 'node:http';
import { ServiceError } from '../errors.js';
import type { FastHeaders } from '../http/fast-headers.js';

/** The reason to refuse a request to any interface. */
export type RequestCheck = (
  req: IncomingMessage,
  target: string,
  headers: Pick<FastHeaders, 'isLoop'>,
) => ServiceError | undefined;

interface RequestCheckDeps {
  maxRequestLineBytes: number;
  /** The refusal by a traffic rule, where one has judged the request. */
  refusalOf: (req: IncomingMessage) => ServiceError | undefined;
}

/** For reads and for the pipeline. */
export function createRequestCheck({ maxRequestLineBytes, refusalOf }: RequestCheckDeps): RequestCheck {
  return function checkRequest(req, target, { isLoop }) {
    if ((req.method ?? '').length + target.length + ' HTTP/1.1 '.length > maxRequestLineBytes) {
      const detail = `at most ${maxRequestLineBytes} bytes are read`;
      return new ServiceError('REQUEST_LINE_TOO_LONG', { detail });
    }
    // Our own name in `Via`: the upstream address leads back here (RFC 9110 §7.6.3).
    if (isLoop) return new ServiceError('LOOP_DETECTED');
    return refusalOf(req);
  };
}

/**
 * A request that names no handle is forwarded as it came, so its path must be plain. A server behind us that folds dot
 * segments, or decodes a path twice, would otherwise find a handle in it that was not fenced here, and that the
 * deletion rules have not seen.
 *
 * @throws ServiceError BAD_PATH
 */
export function assertPlain(path: string): void {
  if (isPlain(path)) return;
  throw new ServiceError('BAD_PATH', {
    message:
      'Only in a handle: dot segments, empty segments, backslashes, control characters, bytes beyond UTF-8',
  });
}

/** The characters of a path (RFC 3986 §3.3). */
const PATH = /^\/(?:[\w.~!$&'()*+,;=:@/-]|%[\da-f]{2})*$/i;

const MAX_ENCODING_LAYERS = 4;

/** Whether it stays a plain path each time it is decoded once more. */
function isPlain(path: string): boolean {
  if (!PATH.test(path)) return false;
  let text: string | undefined = path;
  for (let layer = 0; layer < MAX_ENCODING_LAYERS; layer++) {
    if (text === undefined || !hasPlainSegments(text)) return false;
    const decoded = decodeOnce(text);
    if (decoded === text) return true;
    text = decoded;
  }
  return false;
}

/** An empty segment is allowed at the end. To some servers a segment ends at its `;`. */
function hasPlainSegments(path: string): boolean {
  if (/[\\\x00-\x1f\x7f]/.test(path)) return false;
  const segments = path.split('/').slice(1);
  if (segments.at(-1) === '') segments.pop();
  return segments.every((segment) => !/^(\.{0,2})(;|$)/.test(segment));
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Undefined for bytes that are not UTF-8. Some servers read the overlong form `%c0%ae` as a dot. */
function decodeOnce(text: string): string | undefined {
  try {
    return text.replace(/(?:%[\da-f]{2})+/gi, (escaped) =>
      utf8.decode(Buffer.from(escaped.replaceAll('%', ''), 'hex')),
    );
  } catch {
    return undefined;
  }
}
