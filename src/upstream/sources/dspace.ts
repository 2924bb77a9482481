// DSpace: the Handle resolver of its backend (7 and later) or of its user interface (4 to 6).
import { handleToPath, upperAscii } from '../../handle/handle.js';
import type { Outcome } from '../../handle/outcome.js';
import type { Steps } from '../../time-slicer.js';
import { parseAddress } from '../exchange.js';
import { type UpstreamReply, tooBusy } from '../reply.js';
import { type UpstreamResponse, invalidResponse, isTooBusy, parseBody } from '../response.js';
import { type RecordSource, type SourceSettings, assertWebUrl, urlRecord } from './source.js';

/** Index and TTL of the only value that DSpace's plugin for CNRI's server has (HandlePlugin.java). */
const VALUE = { index: 100, ttl: 100 };

const SWITCH =
  'set handle.remote-resolver.enabled = true in DSpace and restart it, and check the address (DSpace 7 and later: dspace.server.url)';

export function createDspaceSource({ url, prefixes }: SourceSettings): RecordSource {
  const { basePath } = parseAddress(url);
  return {
    // Characters that are syntax in a URL are escaped, also `+`, which DSpace would read as a space.
    read: ({ text }) => ({ method: 'GET', path: `${basePath}/resolve/${handleToPath(text)}` }),
    outcomeOf,
    list: {
      // DSpace does not decode the prefix, and lists everything that begins with it.
      pathOf: (prefix) => `${basePath}/listhandles/${handleToPath(`${prefix}/`)}`,
      // DSpace answers 404 with `handle.hide.listhandles`.
      handlesIn: (response) => (response.status === 404 ? undefined : textsIn(response)),
    },
    probe: () => ({
      method: 'GET',
      path: `${basePath}/listprefixes`,
      check: (response) => {
        checkPrefixes(response, prefixes);
      },
    }),
  };
}

function* outcomeOf(reply: UpstreamReply): Steps<Outcome> {
  // Spring's firewall and Tomcat answer 400 for these names, so that none of them resolves at DSpace.
  if (reply.status === 400 && isRejectedName(reply.handle)) return { kind: 'not-found' };
  if (isTooBusy(reply.status)) throw tooBusy(reply);
  const [url] = textsIn(reply);
  yield;
  if (url === undefined) return { kind: 'not-found' };
  assertWebUrl(url, reply);
  return urlRecord(url, VALUE);
}

/** Percent signs, semicolons, backslashes, control characters, and dot and empty segments (sent as `%2F`). */
const isRejectedName = (handle: string): boolean =>
  /[%;\\\p{Cc}]/u.test(handle) || handleToPath(handle).includes('%2F');

/**
 * Returns the strings of a JSON array. `null` is "none", also as an element. An empty body with 200 is a database error of
 * DSpace 6 and older; a 404 means that the resolver is switched off, never that there is no handle.
 *
 * @throws ServiceError UPSTREAM_INVALID_RESPONSE
 */
function textsIn(response: UpstreamResponse): string[] {
  if (response.status !== 200) throw invalidResponse('no answer of DSpace', response, { remedy: SWITCH });
  const parsed = parseBody(response, SWITCH) ?? [];
  const texts = Array.isArray(parsed) ? parsed.filter((element) => element !== null) : [undefined];
  if (texts.every((text) => typeof text === 'string')) return texts;
  throw invalidResponse('no JSON array of strings', response, { remedy: SWITCH });
}

/** @throws ServiceError for a response without any of the configured prefixes; patterns such as `*` are not looked for */
function checkPrefixes(response: UpstreamResponse, prefixes: readonly string[]): void {
  const served = textsIn(response).map(upperAscii);
  const wanted = prefixes.filter((pattern) => !pattern.includes('*'));
  if (wanted.length === 0 || wanted.some((prefix) => served.includes(prefix))) return;
  throw invalidResponse('a DSpace of other prefixes', response, { remedy: 'check prefixes and url' });
}
