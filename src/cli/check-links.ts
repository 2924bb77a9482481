// The `check-links` command: requests the URLs of records at a polite rate, and reports since when each is dead.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { Agent, Pool } from 'undici';
import { tryDecode } from '../handle/bytes.js';
import { outgoingProxy } from '../config/outgoing-proxy.js';
import { VERSION } from '../config/package-files.js';
import { replaceFile } from '../config/replace-file.js';
import { matchesInSequence } from '../handle/handle.js';
import { hasShortHost } from '../handle/url.js';
import type { HandleValue } from '../handle/value.js';
import { createConnector } from '../upstream/connections.js';
import { codeOf, isBeforeRequest, PROXY_LOGIN } from '../upstream/failure.js';
import { proxyLogin } from '../upstream/hosts.js';
import { callExport, failureReason, readBytes, streamBody, streamExport } from './client.js';
import { readRecordLines } from './handle-net.js';
import { sendPaced } from './paced-requests.js';
import {
  EXIT,
  Failure,
  countText,
  csvText,
  print,
  printNote,
  replaceableFile,
  startCounter,
} from './terminal.js';

interface CheckLinksOptions {
  admin: string;
  prefix?: string;
  state: string;
  csv?: string;
  json?: true;
  /** Maximum requests per minute to a host. */
  rate: number;
  hosts: number;
  /** Maximum duration of a request (s). */
  timeout: number;
  /** Age (hours) from which a result is checked again. */
  age: number;
}

/** The last check of a URL; a line of the state file. */
interface LinkCheck {
  url: string;
  /** Status, or the reason why none is known. */
  result: string;
  checkedAt: string;
  /** Time of the first check since which no page was found. */
  deadSince?: string;
}

const AGENT = 'handle-resolver-proxy';
const HEADERS = { 'User-Agent': `${AGENT}/${VERSION}` };
const MAX_REDIRECTS = 10;
const DISALLOWED = 'not checked: robots.txt';
/** RFC 9309 §2.5 asks for at least 500 KiB. Matching their rules with a URL takes at most 0.5 s (measured). */
const MAX_ROBOTS_BYTES = 500 * 1024;
/** Hosts whose rules are kept, more than may be requested at the same time; those of others are requested again. */
const MAX_ROBOTS = 300;
/** Maximum length of a URL (characters), that of a redirect. */
const MAX_URL = 8000;
const INVALID = `not an http or https URL of at most ${MAX_URL} characters`;
/** The page exists, but not without a login or at this rate. */
const RESTRICTED = [401, 403, 429, 451];

export async function checkLinks(file: string | undefined, options: CheckLinksOptions): Promise<void> {
  const state = replaceableFile(options.state);
  const handles = await handlesByUrl(file, options);
  const checks = await readChecks(state);
  const now = Date.now();
  const dueBefore = now - options.age * 3_600_000;
  const due = [...handles.keys()].filter((url) => {
    const checkedAt = Date.parse(checks.get(url)?.checkedAt ?? '');
    // A check from the future is of unknown age: the clock was set back.
    return !(checkedAt > dueBefore && checkedAt <= now);
  });
  const counter = startCounter('link', due.length);
  const request = createPoliteRequest(options);
  const queue = urlsByHost(due).values();
  let failure: Failure | undefined;
  const isInterrupted = await sendPaced({
    concurrency: options.hosts,
    rate: 0,
    next: () => (failure === undefined ? queue.next().value : undefined),
    async send(urls, signal) {
      for (const url of urls) {
        if (signal.aborted || failure !== undefined) return;
        const check = await checkLink(url, checks.get(url), request);
        if (check instanceof Failure) {
          failure = check;
          return;
        }
        checks.set(url, check);
        appendFileSync(state, `${JSON.stringify(check)}\n`);
        counter.add(1);
      }
    },
  });
  counter.stop();
  await replaceState(state, checks);
  printChecks(handles, checks, options);
  if (failure !== undefined) throw failure;
  if (isInterrupted) throw new Failure('interrupted; run the same command to continue');
}

/** Returns the handles of each URL, so that a URL is requested once. */
async function handlesByUrl(
  file: string | undefined,
  { prefix, admin }: CheckLinksOptions,
): Promise<Map<string, string[]>> {
  if ((file === undefined) === (prefix === undefined))
    throw new Failure('Give either a file or --prefix.', EXIT.usage);
  const handles = new Map<string, string[]>();
  const reject = (line: number, reason: string): void => void printNote(`line ${line}: ${reason}`);
  const lines =
    file === undefined
      ? streamExport(await callExport({ admin }, prefix ?? ''))
      : readRecordLines(file, { hidden: 0, replaced: 0, reject });
  for await (const line of lines)
    for (const { handle, url } of tryDecode(readUrls, line) ?? []) appendToList(handles, url, handle);
  if (handles.size === 0) throw new Failure('There are no URLs to check.', EXIT.usage);
  return handles;
}

function appendToList<T>(lists: Map<string, T[]>, key: string, item: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [item]);
  else list.push(item);
}

/** @throws Error for a line that is not a record */
function readUrls(line: string): { handle: string; url: string }[] {
  const { handle, values } = JSON.parse(line) as { handle: string; values: HandleValue[] };
  return values.flatMap(({ type, data }) => {
    const { value } = data as { value?: unknown };
    return type.toUpperCase() === 'URL' && typeof value === 'string' ? [{ handle, url: value }] : [];
  });
}

/** Each host is the work of one sender, so that a slow host delays only its own URLs. */
function urlsByHost(urls: readonly string[]): Map<string, string[]> {
  const byHost = new Map<string, string[]>();
  for (const url of urls) appendToList(byHost, tryDecode(parseLink, url)?.host ?? '', url);
  return byHost;
}

type PoliteRequest = (url: URL, method: 'HEAD' | 'GET') => Promise<Response>;

/** Whether the robots.txt of a host allows a path with its query. */
type IsAllowed = (path: string) => boolean;

function createPoliteRequest({ rate, timeout }: CheckLinksOptions): PoliteRequest {
  const hosts = new Map<string, { previous: Promise<unknown>; nextAt: number }>();
  const robots = new LRUCache<string, Promise<IsAllowed>>({ max: MAX_ROBOTS });
  const dispatchOf = createDispatch();
  let hasAnswered = false;
  const send = (url: URL, init: RequestInit): Promise<Response> => {
    const host = hosts.get(url.origin) ?? { previous: Promise.resolve(), nextAt: 0 };
    hosts.set(url.origin, host);
    const request = host.previous.then(async () => {
      await sleep(Math.max(0, host.nextAt - performance.now()));
      const signal = AbortSignal.timeout(timeout * 1000);
      const dispatcher = { dispatch: dispatchOf(url) } as unknown as NonNullable<RequestInit['dispatcher']>;
      try {
        const response = await fetch(url, { headers: HEADERS, signal, dispatcher, ...init });
        hasAnswered ||= requestProxy(url) !== undefined;
        return response;
      } catch (error) {
        throw proxyFailure(error, url, hasAnswered) ?? error;
      }
    });
    const onEnd = (): number => (host.nextAt = performance.now() + 60_000 / rate);
    host.previous = request.then(onEnd, onEnd);
    return request;
  };
  return async function requestPolitely(url, method) {
    const isAllowed =
      robots.get(url.origin) ??
      readRobots(() => send(new URL('/robots.txt', url), {}), timeout, requestProxy(url) !== undefined);
    robots.set(url.origin, isAllowed);
    if (!(await isAllowed)(url.pathname + url.search)) throw new Error(DISALLOWED);
    return send(url, { method, redirect: 'manual' });
  };
}

/** The proxy of http URLs that gets whole requests. By default, squid opens tunnels to port 443 only. */
function requestProxy(url: URL): URL | undefined {
  const proxy = url.protocol === 'http:' ? outgoingProxy(url) : undefined;
  return proxy?.protocol === 'http:' ? proxy : undefined;
}

function createDispatch(): (url: URL) => Agent['dispatch'] {
  const agent = new Agent({ connect: createConnector({}, {}), connections: 1 });
  let pool: Pool | undefined;
  return function dispatchOf(url) {
    const proxy = requestProxy(url);
    if (proxy === undefined) return (options, handler) => agent.dispatch(options, handler);
    const requests = (pool ??= new Pool(proxy.origin));
    // RFC 9112 §3.2.2: a proxy gets the whole URL.
    return (options, handler) => {
      const path = `${String(options.origin)}${options.path}`;
      const headers = { ...(options.headers as object), host: url.host, ...proxyLogin(proxy) };
      return requests.dispatch({ ...options, origin: proxy.origin, path, headers }, handler);
    };
  };
}

/** Error of a connection, or of a tunnel with the `proxyReason` of its failure; OpenSSL gives its errors a `reason`. */
type ConnectionError = Error & { code?: string; proxyReason?: string };

/** Returns the failure of the outgoing proxy, which fails for every URL and tells nothing about this one. */
function proxyFailure(error: unknown, url: URL, hasAnswered: boolean): Failure | undefined {
  const { cause } = error as { cause?: ConnectionError };
  const text = cause && proxyProblem(cause, requestProxy(url)?.host, hasAnswered);
  return text === undefined
    ? undefined
    : new Failure(`no link can be checked through the outgoing proxy: ${text}`);
}

function proxyProblem(
  cause: ConnectionError,
  proxyHost: string | undefined,
  hasAnswered: boolean,
): string | undefined {
  const { code, proxyReason, message } = cause;
  if (proxyReason !== undefined)
    return code === PROXY_LOGIN || isBeforeRequest({ code: proxyReason }) ? message : undefined;
  if (proxyHost === undefined) return undefined;
  if (isBeforeRequest(cause)) return `${proxyHost}, ${code}`;
  // So `fetch` reports a 407, in Node.js 20 and in later versions. After a first answer of the proxy it is of the server,
  // which could otherwise end each run.
  const isLoginRequired = ['', 'proxy authentication required'].includes(message);
  return isLoginRequired && !hasAnswered ? `${proxyHost}, HTTP 407` : undefined;
}

/** RFC 9309 §2.3.1: without a file everything is allowed; while the server fails, nothing. */
async function readRobots(
  load: () => Promise<Response>,
  timeout: number,
  isProxied: boolean,
): Promise<IsAllowed> {
  try {
    const response = await load();
    const body = streamBody(response, AbortSignal.timeout(timeout * 1000));
    const text = (await readBytes(body, MAX_ROBOTS_BYTES)).toString();
    // A proxy that does not reach the server sends such a status too.
    if (response.status >= 500) return () => isProxied;
    return parseRobots(response.ok ? text : '');
  } catch {
    // The check of the URL then fails for the same reason.
    return () => true;
  }
}

const ALLOW = '+';
const DISALLOW = '-';
const RULES: ReadonlyMap<string, string> = new Map([
  ['allow', ALLOW],
  ['disallow', DISALLOW],
]);

/**
 * Parses the groups of this program, else those of `*`, and keeps no others: with each rule for each program, 450 KB would
 * need gigabytes. The longest matching rule counts (RFC 9309 §2.2.2).
 */
function parseRobots(text: string): IsAllowed {
  const [own, others]: [string[], string[]] = [[], []];
  const groups = new Map([[AGENT, own]]).set('*', others);
  const current = new Set<string[]>();
  let isInRules = false;
  for (const line of text.split(/[\r\n]+/)) {
    const [key, value] = splitRobotsLine(line);
    const rule = RULES.get(key);
    if (rule === undefined && key !== 'user-agent') continue;
    if (rule !== undefined) for (const group of current) group.push(rule + value);
    else {
      if (isInRules) current.clear();
      const group = groups.get(value.toLowerCase());
      if (group !== undefined) current.add(group);
    }
    isInRules = rule !== undefined;
  }
  return createIsAllowed(own.length > 0 ? own : others);
}

/** Keeps rules as one text, which has at most the length of the file. */
function createIsAllowed(rules: readonly string[]): IsAllowed {
  const given = rules.filter((rule) => rule !== ALLOW && rule !== DISALLOW);
  given.sort((one, other) => other.length - one.length || Number(one > other) - Number(one < other));
  // The rule without a pattern matches every path.
  const text = [...given, ALLOW].join('\n');
  return (path) => text.split('\n').find((rule) => matchesRule(path, rule.slice(1)))?.[0] === ALLOW;
}

function splitRobotsLine(line: string): [key: string, value: string] {
  const [name = '', ...rest] = (line.split('#', 1)[0] ?? '').split(':');
  return [name.trim().toLowerCase(), rest.join(':').trim()];
}

const matchesRule = (path: string, pattern: string): boolean =>
  matchesInSequence(path, (pattern.endsWith('$') ? pattern.slice(0, -1) : `${pattern}*`).split('*'));

async function checkLink(
  url: string,
  before: LinkCheck | undefined,
  request: PoliteRequest,
): Promise<LinkCheck | Failure> {
  const checkedAt = new Date().toISOString();
  const found = await requestLink(url, request).catch(foundInstead);
  if (found instanceof Failure) return found;
  const isKnown = found !== DISALLOWED;
  const isAlive = typeof found === 'number' && (found < 400 || RESTRICTED.includes(found));
  const deadSince = isKnown ? (before?.deadSince ?? checkedAt) : before?.deadSince;
  return { url, result: String(found), checkedAt, ...(!isAlive && deadSince !== undefined && { deadSince }) };
}

/** Returns what an error tells of a URL. A status of the outgoing proxy counts as for an http URL. */
function foundInstead(error: unknown): Failure | number | string {
  if (error instanceof Failure) return error;
  const { proxyReason } = ((error as Error).cause ?? {}) as ConnectionError;
  if (proxyReason === undefined) return failureReason(error);
  return (
    RESTRICTED.find((status) => proxyReason === `HTTP ${status}`) ?? `outgoing proxy ${failureReason(error)}`
  );
}

/** Follows redirects; sends a GET if the server does not answer a HEAD with a page. */
async function requestLink(text: string, request: PoliteRequest): Promise<number> {
  let url = parseLink(text);
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    let response = await request(url, 'HEAD').catch(ignoreCut);
    if (response === undefined || response.status >= 400) response = await request(url, 'GET');
    await response.body?.cancel();
    const location = response.headers.get('location');
    if (response.status < 300 || response.status >= 400 || location === null) return response.status;
    url = parseLink(location, url);
  }
  throw new Error('too many redirects');
}

/** Ignores that a server has not answered a HEAD on an open connection. @throws any other error */
function ignoreCut(error: unknown): undefined {
  const { cause } = error as Error;
  if (codeOf(cause) === undefined || isBeforeRequest(cause)) throw error;
}

/** Matches a reference with a host but without a scheme. */
const WITHOUT_SCHEME = /^[\\/]{2}/;
const WITH_SCHEME = /^[a-z][a-z\d+.-]*:/i;

/** Whether to parse a reference, which takes seconds for a host of thousands of characters beyond ASCII. */
function isParseable(text: string): boolean {
  // The parser ignores these characters.
  const bare = text.replace(/^[\0-\x20]+|[\t\n\r]/g, '');
  const url = WITHOUT_SCHEME.test(bare) ? `https:${bare}` : bare;
  return text.length <= MAX_URL && (!WITH_SCHEME.test(url) || hasShortHost(url));
}

/** @throws Error for a URL that no page can have */
function parseLink(text: string, base?: URL): URL {
  if (!isParseable(text)) throw new Error(INVALID);
  const url = URL.canParse(text, base?.href) ? new URL(text, base) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.href.length > MAX_URL)
    throw new Error(INVALID);
  // `fetch` takes no login. A page that needs one is not dead.
  [url.username, url.password] = ['', ''];
  return url;
}

/** How each check begins, also the last one of a killed process, which may be cut off. */
const CHECK_START = '{"url":"';

function readCheck(json: string): LinkCheck {
  const check = JSON.parse(json) as LinkCheck;
  if (typeof check.url !== 'string' || typeof check.checkedAt !== 'string') throw new TypeError('no check');
  return check;
}

/** Reads the last check of each URL. A last line that is cut off is checked again. @throws Failure for a file of another kind */
async function readChecks(state: string): Promise<Map<string, LinkCheck>> {
  const checks = new Map<string, LinkCheck>();
  try {
    if (!existsSync(state)) writeFileSync(state, '', { mode: 0o600 });
    const lines = readFileSync(state, 'utf8').split('\n');
    for (const [at, line] of lines.entries()) {
      const check = tryDecode(readCheck, line);
      const isCut = at === lines.length - 1 && line.startsWith(CHECK_START.slice(0, line.length));
      if (check !== undefined) checks.set(check.url, check);
      else if (!isCut)
        throw new Error(`line ${at + 1} is no check of a link: give another file, or remove the line`);
    }
    await replaceState(state, checks);
  } catch (error) {
    throw new Failure(`cannot use the state file: ${failureReason(error)}`, EXIT.usage);
  }
  return checks;
}

function replaceState(state: string, checks: ReadonlyMap<string, LinkCheck>): Promise<number> {
  const lines = [...checks.values()].map((check) => `${JSON.stringify(check)}\n`);
  return replaceFile(state, [lines.join('')]);
}

function printChecks(
  handles: ReadonlyMap<string, string[]>,
  checks: ReadonlyMap<string, LinkCheck>,
  { csv, json }: CheckLinksOptions,
): void {
  const known = [...handles.keys()].flatMap((url) => checks.get(url) ?? []);
  const dead = known.filter(({ deadSince }) => deadSince !== undefined);
  const links = dead.flatMap((check) =>
    (handles.get(check.url) ?? []).map((handle) => ({ handle, ...check })),
  );
  if (csv !== undefined) {
    const rows = links.map(({ handle, url, result, deadSince = '', checkedAt }) => [
      ...[handle, url, result, deadSince, checkedAt],
    ]);
    writeFileSync(csv, csvText([['handle', 'url', 'result', 'deadSince', 'checkedAt'], ...rows]));
  }
  if (json === true) print(JSON.stringify(links));
  const left = handles.size - known.length;
  printNote(
    `${countText(handles.size, 'link')}: ${dead.length} dead, ${known.length - dead.length} not, ${left} left`,
  );
}
