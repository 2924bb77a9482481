// The endpoints that are passed on and name no handle: their methods, and the form their paths must have.
import { ServiceError } from '../errors.js';

const READ = ['GET', 'HEAD'];

/** The first that matches. Methods: api-facts §4.2, §5.7 and §6.5, recordings "sessions: …" and "empty handle: …". */
const ENDPOINTS: readonly (readonly [path: RegExp, methods: readonly string[]])[] = [
  [/^\/api\/handles\/?$/, [...READ, 'POST', 'PUT', 'DELETE']],
  [/^\/api\/sessions\/this$/, [...READ, 'POST', 'PUT', 'DELETE']],
  [/^\/api\/sessions(\/|$)/, ['POST']],
  [/^\/api\/site(\/|$)/, READ],
  [/^\/api\/prefixes\/?$/, [...READ, 'POST', 'DELETE']],
  [/^\/api\/prefixes\//, ['POST', 'DELETE']],
  [/^\/api\/verifications(\/|$)/, ['POST']],
  [/^\/hrls(\/|$)/, READ],
];

/**
 * A server behind us that folds dot segments, or decodes a path twice, would otherwise find a handle in it, which was
 * neither fenced here nor judged by the deletion rule.
 *
 * @throws ServiceError BAD_PATH
 */
export function assertPlainPath(path: string): void {
  if (isPlain(path)) return;
  throw new ServiceError('BAD_PATH', {
    message:
      'Only in a handle: dot segments, empty segments, backslashes, control characters, bytes beyond UTF-8',
  });
}

/** The methods of an endpoint, ours included, or undefined when there is none at this path. */
export function methodsAt(path: string): readonly string[] | undefined {
  const [, methods] = ENDPOINTS.find(([pattern]) => pattern.test(path)) ?? [];
  return methods && [...methods, 'OPTIONS'];
}

/** The characters of a path (RFC 3986 §3.3). */
const PATH = /^\/(?:[\w.~!$&'()*+,;=:@/-]|%[\da-f]{2})*$/i;

/** Nobody spells a name in more layers than this. */
const MOST_LAYERS = 4;

/** Whether it stays a path of names, each time it is decoded once more. */
function isPlain(path: string): boolean {
  if (!PATH.test(path)) return false;
  let text: string | undefined = path;
  for (let layer = 0; layer < MOST_LAYERS; layer++) {
    if (text === undefined || !hasPlainSegments(text)) return false;
    const decoded = decodeOnce(text);
    if (decoded === text) return true;
    text = decoded;
  }
  return false;
}

/** An empty segment is allowed at the end. What follows a `;` is not a part of the name to some servers. */
function hasPlainSegments(path: string): boolean {
  if (/[\\\x00-\x1f\x7f]/.test(path)) return false;
  const segments = path.split('/').slice(1);
  if (segments.at(-1) === '') segments.pop();
  return segments.every((segment) => !/^(\.{0,2})(;|$)/.test(segment));
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Undefined when bytes are no UTF-8, overlong forms among them: some servers read `%c0%ae` as a dot. */
function decodeOnce(text: string): string | undefined {
  try {
    return text.replace(/(?:%[\da-f]{2})+/gi, (escaped) =>
      utf8.decode(Buffer.from(escaped.replaceAll('%', ''), 'hex')),
    );
  } catch {
    return undefined;
  }
}
