// Repositories: a record has a single URL value, and nothing can be written.
import { LRUCache } from 'lru-cache';
import type { ServerConfig } from '../../config/upstream-servers.js';
import { ServiceError } from '../../errors.js';
import { handleToPath, upperAscii } from '../../handle/handle.js';
import { listMembers, type Outcome, RESPONSE_CODE } from '../../handle/outcome.js';
import { isWebAddress } from '../../handle/url.js';
import { type Steps, flatMapGroups, runToEnd } from '../../time-slicer.js';
import type { RecordClient, RecordSource, ServerAccess, SourceProtocol } from '../../upstream/contract.js';
import { exchange, parseAddress, requestHeaders } from '../../upstream/exchange.js';
import { answerWith, readInSlices, tooBusy, type UpstreamReply } from '../../upstream/reply.js';
import { invalidResponse, isTooBusy, parseList, type UpstreamResponse } from '../../upstream/response.js';
import { fillAddress, urlRecord } from '../../upstream/url-record.js';
import { ERRORS } from './plugin.js';

/** A repository mints its own handles, with case-sensitive suffixes, and has neither logins nor prefix records. */
const REPOSITORY = {
  keepsCase: true,
  holdsPrefixRecords: false,
  forwards: false,
  refusal: () => new ServiceError(ERRORS.REPOSITORY_MINTS, { allow: ['GET', 'HEAD', 'OPTIONS'] }),
} as const;

// DSpace: the Handle resolver in its backend (version 7 and later) or its user interface (versions 4 to 6).

/** Index and TTL of the single value that DSpace's plugin for CNRI's server returns (HandlePlugin.java). */
const DSPACE_VALUE = { index: 100, ttl: 100 };

const SWITCH =
  'set handle.remote-resolver.enabled = true in DSpace and restart it, and check the address (DSpace 7 and later: dspace.server.url)';

export const DSPACE = {
  kind: 'dspace',
  ...REPOSITORY,
  protocol: createDspaceProtocol,
  createList: createDspaceList,
} satisfies RecordSource;

function createDspaceProtocol({ url, prefixes }: ServerConfig): SourceProtocol {
  const { basePath } = parseAddress(url);
  return {
    // URL delimiters are escaped, including `+`, which DSpace would decode as a space.
    read: ({ text }) => ({ method: 'GET', path: `${basePath}/resolve/${handleToPath(text)}` }),
    outcomeOf: dspaceOutcome,
    probe: () => ({
      method: 'GET',
      path: `${basePath}/listprefixes`,
      check: (response) => checkPrefixes(response, prefixes),
    }),
  };
}

function* dspaceOutcome(reply: UpstreamReply): Steps<Outcome> {
  // Spring's firewall and Tomcat reject these names with 400, so DSpace cannot resolve them.
  if (reply.status === 400 && isRejectedName(reply.handle)) return { kind: 'not-found' };
  if (isTooBusy(reply.status)) throw tooBusy(reply);
  const [url] = yield* textsIn(reply);
  if (url === undefined) return { kind: 'not-found' };
  if (!isWebAddress(url)) throw invalidResponse('a record without a web address', reply);
  return urlRecord(url, DSPACE_VALUE);
}

/** Whether a name has `%;\`, control characters, or dot or empty segments, which become `%2F`. */
const isRejectedName = (handle: string): boolean =>
  /[%;\\\p{Cc}]/u.test(handle) || handleToPath(handle).includes('%2F');

/**
 * Returns the strings of a JSON array. `null`, also as an element, means "none"; DSpace 6 reports a database error as
 * 200 without a body. A 404 means that the resolver is off. @throws ServiceError UPSTREAM_INVALID_RESPONSE
 */
function* textsIn(response: UpstreamResponse): Steps<string[]> {
  if (response.status !== 200) throw invalidResponse('not a DSpace response', response, { remedy: SWITCH });
  const { texts, rest } = yield* parseList(response, SWITCH);
  if (['[]', 'null'].includes(rest.trim())) return texts;
  throw invalidResponse('no JSON array of strings', response, { remedy: SWITCH });
}

/** Compares prefixes, except patterns. @throws ServiceError if none of the configured ones is listed */
function checkPrefixes(response: UpstreamResponse, prefixes: readonly string[]): void {
  const served = runToEnd(textsIn(response)).map(upperAscii);
  const wanted = prefixes.filter((pattern) => !pattern.includes('*'));
  if (wanted.length === 0 || wanted.some((prefix) => served.includes(prefix))) return;
  throw invalidResponse('a DSpace with other prefixes', response, { remedy: 'check prefixes and url' });
}

// Landing pages whose URL is a template filled with the handle, such as pages of EPrints or OJS.

/** The usual index of a URL value, and the default TTL of a Handle server. */
const PAGE_VALUE = { index: 1, ttl: 86_400 };

/** Statuses of missing pages. A redirect does not count, because it may lead to a login page. */
const GONE: readonly number[] = [404, 410];

export const TEMPLATE = {
  kind: 'template',
  ...REPOSITORY,
  protocol: createTemplateProtocol,
  createList: () => () => Promise.resolve(NO_LISTS),
} satisfies RecordSource;

function createTemplateProtocol({ url: template, existenceCheck }: ServerConfig): SourceProtocol {
  const outcomeFor = (handle: string): Outcome => {
    const url = fillAddress(template, handle);
    return url === undefined ? { kind: 'not-found' } : urlRecord(url, PAGE_VALUE);
  };
  return {
    read(handle) {
      const outcome = outcomeFor(handle.text);
      if (!existenceCheck || outcome.kind !== 'found') return outcome;
      return { method: 'HEAD', path: pathOf(fillAddress(template, handle.text) ?? '') };
    },
    outcomeOf: (reply) => () => (exists(reply) ? outcomeFor(reply.handle) : { kind: 'not-found' }),
    probe: () => ({ method: 'HEAD', path: '/', mayRedirect: true }),
  };
}

/** Whether the landing page exists. @throws ServiceError for an inconclusive status */
function exists(reply: UpstreamReply): boolean {
  const { status } = reply;
  if (status >= 200 && status < 400) return true;
  if (GONE.includes(status)) return false;
  if (isTooBusy(status)) throw tooBusy(reply);
  throw invalidResponse('status does not show whether the page exists', reply);
}

/** Returns the path and query of a URL. */
const pathOf = (url: string): string => /^https?:\/\/[^/?#]+([^#]*)/.exec(url)?.[1] ?? '/';

export const sources: readonly RecordSource[] = [DSPACE, TEMPLATE];

// Lists the handles of a prefix at a DSpace, in a Handle server's JSON, and paginates the list.

function createDspaceList(
  settings: ServerConfig,
  { pseudonym, limiter, dispatcher, slicer }: ServerAccess,
): RecordClient['list'] {
  const { origin, basePath } = parseAddress(settings.url);
  const headers = requestHeaders({ pseudonym });
  const reading = new Map<string, Promise<readonly string[] | undefined>>();
  /** The last lists by path, so that an unchanged list is parsed once for all of its pages. */
  const parsed = new LRUCache<string, { body: string; handles: readonly string[] }>({
    maxSize: settings.maxBodyBytes,
    sizeCalculation: ({ body }) => body.length,
  });

  async function read(path: string, prefix: string): Promise<readonly string[] | undefined> {
    const request = { origin, method: 'GET' as const, path, headers };
    const response = await limiter.run(() => exchange(dispatcher, request, settings));
    const { status, body } = response;
    // DSpace responds with 404 if `handle.hide.listhandles` is set.
    if (status === 404) return undefined;
    const known = parsed.get(path);
    if (status === 200 && body === known?.body) return known.handles;
    const work = handlesOfPrefix(response, prefix);
    const handles = await readInSlices(slicer, work, { chars: body.length, caller: undefined });
    parsed.set(path, { body, handles });
    return handles;
  }

  /** Reads a list (single flight), so that concurrent callers cause only one request, which is charged to none. */
  function join(prefix: string): Promise<readonly string[] | undefined> {
    // DSpace does not decode the prefix, and lists all handles that start with it.
    const path = `${basePath}/listhandles/${handleToPath(`${prefix}/`)}`;
    const joined = reading.get(path) ?? read(path, prefix).finally(() => reading.delete(path));
    reading.set(path, joined);
    return joined;
  }

  return async function listHandles(prefix, paging) {
    const listed = await join(prefix);
    if (listed === undefined) return NO_LISTS;
    const { handles, ...members } = listMembers(prefix, listed, paging);
    return { ...answerWith(200, members), handles };
  };
}

/** Returns the handles of the prefix, without those of longer prefixes (`1234567` for `123456`). */
function* handlesOfPrefix(response: UpstreamResponse, prefix: string): Steps<string[]> {
  const start = `${upperAscii(prefix)}/`;
  const isOfPrefix = (handle: string): boolean => upperAscii(handle.slice(0, start.length)) === start;
  return yield* flatMapGroups(yield* textsIn(response), (group) => group.filter(isOfPrefix));
}

const NO_LISTS = answerWith(501, {
  responseCode: RESPONSE_CODE.operationNotSupported,
  message: 'This repository does not list its handles',
});
