// Counts the reads of the listed prefixes, and serves their pages.
import type { HandlerParts, Started } from '../../plugin.js';
import type { Host } from '../../host.js';
import { repeat } from '../../clock.js';
import { foldedRef, upperAscii } from '../../handle/handle.js';
import { HTML_TYPE, type SitePage, brandingOf, createPageLayout, html } from '../../html/html.js';
import { contextOf } from '../../http/context.js';
import { JSON_TYPE, sendText } from '../../http/reply.js';
import { type Listener, restOf } from '../../http/route-table.js';
import { decodeParameter } from '../../http/router.js';
import { prefersJson } from '../../redirect/request.js';
import { type PageCounts, createPageCounts } from './counts.js';
import type { PrefixPagesConfig } from './plugin.js';

export function start(host: Host, { prefixPages: { prefixes, publishEveryMs } }: PrefixPagesConfig): Started {
  const counts = createPageCounts(prefixes, host);
  const cancel = repeat(host.clock, publishEveryMs, counts.publish);
  return {
    answered: ({ handle: { prefix }, exists }) => counts.add(prefix, exists ? 'found' : 'unknown'),
    sentPrepared: ({ handle, exists }) => counts.add(foldedRef(handle).prefix, exists ? 'found' : 'unknown'),
    failed: ({ prefix }) => counts.add(prefix, 'failed'),
    compared: ({ prefix }, isCurrent) => counts.add(prefix, isCurrent ? 'current' : 'outdated'),
    handlers: (parts) => ({ readPrefixPage: createPrefixPage(counts, parts) }),
    close() {
      cancel();
      return counts.publish();
    },
  };
}

function createPrefixPage(counts: PageCounts, { settings }: HandlerParts): Listener {
  const { renderPage, securityHeaders } = createPageLayout(brandingOf(settings));
  const { gzipMinBytes } = settings.http;
  const headers = { ...securityHeaders, 'Cache-Control': 'public, max-age=60' };
  return async function readPrefixPage(req, res) {
    const name = restOf(contextOf(res));
    const figures = await counts.read(upperAscii(decodeParameter(name.replace(/\.json$/, ''))));
    const isJson = name.endsWith('.json') || prefersJson(req.headers.accept);
    const text = isJson ? JSON.stringify(figures) : renderPage(renderFigures(figures));
    const contentType = isJson ? JSON_TYPE : HTML_TYPE;
    await sendText(req, res, { status: 200, contentType, text, headers, varies: ['Accept'], gzipMinBytes });
  };
}

type Figures = Awaited<ReturnType<PageCounts['read']>>;

function renderFigures({ prefix, month, instances, countedSince, ...figures }: Figures): SitePage {
  const { resolutions, found, failed, availability, compared, fresh } = figures;
  return {
    title: `Prefix ${prefix}`,
    main: html`<h1><span class="kind">Prefix</span> <bdi dir="ltr">${prefix}</bdi></h1>
      <section>
        <dl>
          <dt>Resolutions in ${month}</dt>
          <dd>${resolutions}, ${found} of them found; ${failed} failed</dd>
          <dt>Availability</dt>
          <dd>${percentText(availability, 'requests answered', 'no requests')}</dd>
          <dt>Fresh</dt>
          <dd>${percentText(fresh, `${compared} compared responses`, 'not measured')}</dd>
          <dt>Counted since</dt>
          <dd>${countedSince?.slice(0, 16).replace('T', ' ').concat(' UTC') ?? 'unknown'}</dd>
          <dt>Counted by</dt>
          <dd>${instances === 'all' ? 'all instances' : 'one instance'} of this service</dd>
        </dl>
      </section>
      <p class="quiet"><a href="${encodeURIComponent(prefix)}.json">The figures as JSON</a></p>`,
  };
}

const percentText = (fraction: number | null, whole: string, otherwise: string): string =>
  fraction === null ? otherwise : `${(fraction * 100).toFixed(2)} % of ${whole}`;
