// Serves the OpenAPI document of each listener as JSON and as a page.
import type { HandlerParts, Started } from '../../plugin.js';
import type { Host } from '../../host.js';
import type { Config } from '../../config/schema.js';
import { HTML_TYPE, brandingOf, createPageLayout } from '../../html/html.js';
import type { Listener } from '../../http/route-table.js';
import { contextOf } from '../../http/context.js';
import { JSON_TYPE, sendText } from '../../http/reply.js';
import { NOSNIFF } from '../../http/raw-response.js';
import type { Description } from './description.js';

export const start = ({ settings }: Host): Started => ({
  handlers: createPublic,
  adminHandlers: { openApi: createAdminDocument(settings) },
});

const createPublic = ({ settings: { page }, settings, routes }: HandlerParts) => ({
  // Limited to five minutes, because an update of the proxy may change the document.
  openApi: createOpenApi(settings, 'public, max-age=300', async () =>
    (await import('./description.js')).describePublic(page.title, routes),
  ),
});

/** A reload may change the title and the branding. */
function createAdminDocument(settings: Host['settings']): Listener {
  const create = (): Listener =>
    createOpenApi(settings.current, 'no-store', async () =>
      (await import('./description.js')).describeAdmin(settings.current.page.title),
    );
  let openApi = create();
  settings.onReload(() => {
    openApi = create();
  });
  return (req, res) => openApi(req, res);
}

function createOpenApi(config: Config, cacheControl: string, describe: () => Promise<Description>): Listener {
  const headers = { 'Cache-Control': cacheControl };
  const { gzipMinBytes } = config.http;
  const { renderPage, securityHeaders } = createPageLayout(brandingOf(config));
  let description: Promise<Description> | undefined;
  return async function openApi(req, res): Promise<void> {
    // Not before the first request, because most proxies are never asked.
    const { text, page, tryUrl } = await (description ??= describe());
    const { path, query } = contextOf(res).target;
    const url = tryUrl(new URLSearchParams(query));
    if (url !== undefined) {
      res.writeHead(303, { 'Cache-Control': 'no-store', Location: url, ...NOSNIFF }).end();
    } else if (path.endsWith('.json')) {
      await sendText(req, res, { contentType: JSON_TYPE, text, headers, gzipMinBytes });
    } else {
      const reply = { contentType: HTML_TYPE, text: renderPage(page), gzipMinBytes };
      await sendText(req, res, { ...reply, headers: { ...securityHeaders, ...headers } });
    }
  };
}
