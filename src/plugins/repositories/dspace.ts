// DSpace: the Handle resolver in its backend (version 7 and later) or its user interface (versions 4 to 6).
import { handleToPath, upperAscii } from '../../handle/handle.js';
import type { Outcome } from '../../handle/outcome.js';
import type { Steps } from '../../time-slicer.js';
import { parseAddress } from '../../upstream/exchange.js';
import { type UpstreamReply, tooBusy } from '../../upstream/reply.js';
import { type UpstreamResponse, invalidResponse, isTooBusy, parseBody } from '../../upstream/response.js';
import type { ServerConfig } from '../../config/upstream-servers.js';
import type { RecordSource, SourceProtocol } from '../../upstream/contract.js';
import { type ListProtocol, createRepositoryList } from './list.js';
import { REPOSITORY, assertWebUrl, urlRecord } from './url-record.js';

/** Index and TTL of the single value that DSpace's plugin for CNRI's server returns (HandlePlugin.java). */
const VALUE = { index: 100, ttl: 100 };

const SWITCH =
  'set handle.remote-resolver.enabled = true in DSpace and restart it, and check the address (DSpace 7 and later: dspace.server.url)';

export const DSPACE = {
  kind: 'dspace',
  ...REPOSITORY,
  protocol: createDspaceProtocol,
  createList: (settings, parts) => createRepositoryList(listProtocol(settings), settings, parts),
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
      check: (response) => {
        checkPrefixes(response, prefixes);
      },
    }),
  };
}

function listProtocol({ url }: ServerConfig): ListProtocol {
  const { basePath } = parseAddress(url);
  return {
    // DSpace does not decode the prefix, and lists all handles that start with it.
    pathOf: (prefix) => `${basePath}/listhandles/${handleToPath(`${prefix}/`)}`,
    // DSpace responds with 404 if `handle.hide.listhandles` is set.
    handlesIn: (response) => (response.status === 404 ? undefined : textsIn(response)),
  };
}

function* dspaceOutcome(reply: UpstreamReply): Steps<Outcome> {
  // Spring's firewall and Tomcat reject these names with 400, so DSpace cannot resolve them.
  if (reply.status === 400 && isRejectedName(reply.handle)) return { kind: 'not-found' };
  if (isTooBusy(reply.status)) throw tooBusy(reply);
  const [url] = textsIn(reply);
  yield;
  if (url === undefined) return { kind: 'not-found' };
  assertWebUrl(url, reply);
  return urlRecord(url, VALUE);
}

/**
 * Whether a name has `%`, `;`, `\` or control characters, or dot or empty segments, for which `handleToPath`
 * writes `%2F`.
 */
const isRejectedName = (handle: string): boolean =>
  /[%;\\\p{Cc}]/u.test(handle) || handleToPath(handle).includes('%2F');

/**
 * Returns the strings of a JSON array. `null` means "none", both as the body and as an element. DSpace 6 and
 * older report a database error as 200 with an empty body. A 404 means that the resolver is disabled, not
 * that the handle does not exist.
 *
 * @throws ServiceError UPSTREAM_INVALID_RESPONSE
 */
function textsIn(response: UpstreamResponse): string[] {
  if (response.status !== 200) throw invalidResponse('not a DSpace response', response, { remedy: SWITCH });
  const parsed = parseBody(response, SWITCH) ?? [];
  const texts = Array.isArray(parsed) ? parsed.filter((element) => element !== null) : [undefined];
  if (texts.every((text) => typeof text === 'string')) return texts;
  throw invalidResponse('no JSON array of strings', response, { remedy: SWITCH });
}

/**
 * Checks the listed prefixes against the configured ones, ignoring patterns such as `*`.
 *
 * @throws ServiceError if the response lists none of the configured prefixes
 */
function checkPrefixes(response: UpstreamResponse, prefixes: readonly string[]): void {
  const served = textsIn(response).map(upperAscii);
  const wanted = prefixes.filter((pattern) => !pattern.includes('*'));
  if (wanted.length === 0 || wanted.some((prefix) => served.includes(prefix))) return;
  throw invalidResponse('a DSpace with other prefixes', response, { remedy: 'check prefixes and url' });
}
