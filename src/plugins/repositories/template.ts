// Landing pages whose URL is a template filled with the handle, such as pages of EPrints or OJS.
import type { Outcome } from '../../handle/outcome.js';
import { inOneStep } from '../../time-slicer.js';
import { type UpstreamReply, tooBusy } from '../../upstream/reply.js';
import { invalidResponse, isTooBusy } from '../../upstream/response.js';
import type { ServerConfig } from '../../config/upstream-servers.js';
import type { RecordSource, SourceProtocol } from '../../upstream/contract.js';
import { NO_LISTS } from './list.js';
import { REPOSITORY, urlRecord } from './url-record.js';

/** The usual index of a URL value, and the default TTL of a Handle server. */
const VALUE = { index: 1, ttl: 86_400 };

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
    return url === undefined ? { kind: 'not-found' } : urlRecord(url, VALUE);
  };
  return {
    read(handle) {
      const outcome = outcomeFor(handle.text);
      if (!existenceCheck || outcome.kind !== 'found') return outcome;
      return { method: 'HEAD', path: pathOf(fillAddress(template, handle.text) ?? '') };
    },
    outcomeOf: (reply) => inOneStep(() => (exists(reply) ? outcomeFor(reply.handle) : { kind: 'not-found' })),
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

/**
 * Fills `{handle}`, `{prefix}` and `{suffix}`. URL delimiters are escaped, except slashes in the path.
 * Returns undefined if the path contains dot segments, which clients would remove (RFC 3986 §5.2.4).
 */
export function fillAddress(template: string, handle: string): string | undefined {
  const slash = handle.indexOf('/');
  const parts = { handle, prefix: handle.slice(0, slash), suffix: handle.slice(slash + 1) };
  const end = template.search(/[?#]/);
  const pathEnd = end === -1 ? template.length : end;
  const fill = (text: string, encode: (part: string) => string): string =>
    text.replace(/\{(handle|prefix|suffix)\}/g, (_, name: keyof typeof parts) => encode(parts[name]));
  const filled = fill(template.slice(0, pathEnd), (part) => encode(part).replaceAll('%2F', '/'));
  if (/\/\.{1,2}(?:\/|$)/.test(filled)) return undefined;
  return filled + fill(template.slice(pathEnd), encode);
}

/** Percent-encodes text. A lone surrogate, which JSON can contain and UTF-8 cannot, becomes U+FFFD. */
const encode = (part: string): string => encodeURIComponent(Buffer.from(part).toString());
