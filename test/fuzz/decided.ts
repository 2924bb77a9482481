// Compares the requests in the proxy's log with the requests that a recording upstream received.
import type { RecordedRequest } from '../support/recording-upstream.js';

interface Line {
  interface?: string;
  method: string;
  path: string;
  handle?: string;
  result: string;
}

interface Explained {
  /** Number of requests that the proxy forwarded and the upstream answered. */
  least: number;
  /** `least` plus the number of failed requests, which may have been sent. */
  most: number;
}

/**
 * Describes each upstream request that the log does not explain. For keys that are certain, it also describes
 * each logged request that the upstream did not receive.
 */
export function unexplained(
  logs: readonly object[],
  requests: readonly RecordedRequest[],
  isCertain: (key: string) => boolean,
): string[] {
  const lines = logs.filter((line): line is Line => 'msg' in line && line.msg === 'request');
  const decided = new Map<string, Explained>();
  for (const line of lines) explain(decided, line);
  const seen = new Map<string, number>();
  for (const { method, target } of requests) {
    const key = keyOf(method, target.replace(/\?.*$/, ''));
    seen.set(key, (seen.get(key) ?? 0) + 1);
  }
  return [...new Set([...decided.keys(), ...seen.keys()])].flatMap((key) => {
    const { least, most } = decided.get(key) ?? startOf(key);
    const times = seen.get(key) ?? 0;
    if (times <= most && (times >= least || !isCertain(key))) return [];
    return [`${key}: seen ${times} times, sent ${least} to ${most} times`];
  });
}

function explain(decided: Map<string, Explained>, line: Line): void {
  const key =
    line.handle === undefined ? keyOf(line.method, line.path) : keyOfHandle(line.method, line.handle);
  const isSentOn = line.interface === 'record' && ['bypass', 'write'].includes(line.result);
  add(decided, key, { least: isSentOn ? 1 : 0, most: isSentOn || line.result === 'error' ? 1 : 0 });
  if (line.handle === undefined) return;
  // Any request for a handle may read its record, and ePIC v2 sends additional requests for a handle.
  add(decided, keyOfHandle('GET', line.handle), { least: 0, most: Infinity });
  if (line.interface !== 'v2') return;
  for (const method of ['PUT', 'DELETE'])
    add(decided, keyOfHandle(method, line.handle), { least: 0, most: Infinity });
}

function add(decided: Map<string, Explained>, key: string, { least, most }: Explained): void {
  const before = decided.get(key) ?? startOf(key);
  decided.set(key, { least: before.least + least, most: before.most + most });
}

const startOf = (key: string): Explained => ({ least: 0, most: isOwnQuestion(key) ? Infinity : 0 });

/** Whether ePIC v2 itself sends this request: a list, a reverse lookup, or a request for a minted name. */
const isOwnQuestion = (key: string): boolean =>
  /^GET (\/api\/handles\/?|\/hrls\/handles\/21\.T11998)$/.test(key) ||
  /^(GET|PUT) handle .*[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}/.test(key);

/** Returns the key of a request. Sessions are masked because the log does not name them. */
function keyOf(method: string, path: string): string {
  const raw = /^\/api\/handles\/(.+)$/s.exec(path)?.[1];
  if (raw !== undefined) return keyOfHandle(method, decodeURIComponent(raw));
  return `${method} ${path.replace(/^(\/api\/sessions\/)(?!this$).+$/is, '$1***')}`;
}

const keyOfHandle = (method: string, handle: string): string =>
  `${method} handle ${handle.replace(/[a-z]+/g, (letters) => letters.toUpperCase())}`;
