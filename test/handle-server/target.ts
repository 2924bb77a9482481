// The request target as it came: path, query and the handle in it, decoded as the Java servlets do.
import { javaException } from './bad-input.js';
import { readJson } from './lenient-json.js';

export interface Target {
  /** Raw path, nothing decoded. */
  path: string;
  query: string;
}

/** Splits a raw target at its first `?`; an absolute form loses scheme and host (RFC 9112 §3.2.2). */
export function splitTarget(target: string): Target {
  const origin = target.replace(/^https?:\/\/[^/?]*/i, '');
  const at = origin.indexOf('?');
  return at === -1 ? { path: origin, query: '' } : { path: origin.slice(0, at), query: origin.slice(at + 1) };
}

/** The handle in a raw path, after `/api/handles` or before a redirect. One leading slash is dropped. */
export function decodeHandle(rawPath: string): string {
  const raw = rawPath.startsWith('/') ? rawPath.slice(1) : rawPath;
  if (raw === '/') return ''; // recording "resolve: malformed, leading slash only" names no handle
  return percentDecode(raw).toString('utf8');
}

function percentDecode(text: string): Buffer {
  const bytes = text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1');
}

/** What Jetty 9 refuses before any servlet sees it. */
export const hasBadEscape = (path: string): boolean => /%(?![0-9a-f]{2})|%00/i.test(path);

/** Parameters of the query, and for POST those of a form or of a JSON object in the body. */
export function readParameters(query: string, post?: { contentType: string; body: Buffer }): URLSearchParams {
  const parameters = new URLSearchParams(Buffer.from(query, 'latin1').toString('utf8'));
  if (post?.contentType.startsWith('application/x-www-form-urlencoded')) {
    for (const [name, value] of new URLSearchParams(post.body.toString('utf8'))) {
      parameters.append(name, value);
    }
  }
  if (post?.contentType.startsWith('application/json')) appendJson(parameters, post.body);
  return parameters;
}

function appendJson(parameters: URLSearchParams, body: Buffer): void {
  const json = readJson(body.toString('utf8'));
  if (json === null || typeof json !== 'object' || Array.isArray(json)) {
    throw javaException('Expected JSON object');
  }
  for (const [name, value] of Object.entries(json)) {
    for (const one of Array.isArray(value) ? value : [value]) parameters.append(name, String(one));
  }
}

/** The rule for GET parameters: present and empty, `yes` or `true` mean true; all else is false. */
export function isOn(value: string | null): boolean {
  return value !== null && /^(|yes|true)$/i.test(value);
}
