// Counts the reads of the listed prefixes, and serves their pages.
import type { HandlerParts, Started } from '../../plugin.js';
import type { Host } from '../../host.js';
import { ServiceError } from '../../errors.js';
import { upperAscii } from '../../handle/handle.js';
import { HTML_TYPE, brandingOf, createPageLayout } from '../../html/html.js';
import { contextOf } from '../../http/context.js';
import { JSON_TYPE, sendText } from '../../http/reply.js';
import { type Listener, restOf } from '../../http/route-table.js';
import { decodeParameter } from '../../http/router.js';
import { prefersJson } from '../../redirect/request.js';
import { type PageCounts, createPageCounts } from './counts.js';
import { figuresOf, renderFigures } from './figures.js';
import { ERRORS, type PrefixPagesConfig } from './plugin.js';

export function start(host: Host, { prefixPages: { prefixes, publishEveryMs } }: PrefixPagesConfig): Started {
  const counts = createPageCounts(prefixes, host);
  let cancel = (): void => undefined;
  const publish = (): void => {
    cancel = host.clock.after(publishEveryMs, publish);
    void counts.publish();
  };
  publish();
  return {
    answered: ({ handle: { prefix }, exists }) => {
      counts.add(prefix, exists ? 'found' : 'unknown');
    },
    sentPrepared: ({ handle, exists }) => {
      counts.add(prefixInHandle(handle), exists ? 'found' : 'unknown');
    },
    failed: ({ prefix }) => {
      counts.add(prefix, 'failed');
    },
    compared: ({ prefix }, isCurrent) => {
      counts.add(prefix, isCurrent ? 'current' : 'outdated');
    },
    handlers: (parts) => ({ readPrefixPage: createPrefixPage(counts, parts) }),
    close() {
      cancel();
      return counts.publish();
    },
  };
}

// Runs for each hit, so it does not parse the rest of the handle.
function prefixInHandle(handle: string): string {
  const slash = handle.indexOf('/');
  return upperAscii(slash === -1 ? handle : handle.slice(0, slash));
}

function createPrefixPage(counts: PageCounts, { settings }: HandlerParts): Listener {
  const { renderPage, securityHeaders } = createPageLayout(brandingOf(settings));
  const { gzipMinBytes } = settings.http;
  const headers = { ...securityHeaders, 'Cache-Control': 'public, max-age=60' };
  return async function readPrefixPage(req, res) {
    const name = restOf(contextOf(res));
    const prefix = upperAscii(decodeParameter(name.replace(/\.json$/, '')));
    if (!counts.has(prefix)) throw new ServiceError(ERRORS.PREFIX_PAGE_UNKNOWN);
    const month = await counts.read(prefix);
    if (month === undefined) throw new ServiceError(ERRORS.PREFIX_PAGE_UNAVAILABLE, { retryAfterMs: 1000 });
    const figures = figuresOf(month);
    const isJson = name.endsWith('.json') || prefersJson(req.headers.accept);
    const text = isJson ? JSON.stringify(figures) : renderPage(renderFigures(figures));
    const contentType = isJson ? JSON_TYPE : HTML_TYPE;
    await sendText(req, res, { contentType, text, headers, varies: ['Accept'], gzipMinBytes });
  };
}
