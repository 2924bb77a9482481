// Serves the OpenAPI document of each listener as JSON and as a page.
import type { Started } from '../../plugin.js';
import type { Host } from '../../host.js';
import type { Config } from '../../config/schema.js';
import { HTML_TYPE, brandingOf, createPageLayout } from '../../html/html.js';
import type { Listener, Route } from '../../http/route-table.js';
import { contextOf } from '../../http/context.js';
import { JSON_TYPE, sendText } from '../../http/reply.js';
import { NOSNIFF } from '../../http/raw-response.js';
import { parseParameters } from '../../http/target.js';
import type { Description } from './description.js';

export const start = (host: Host): Started => ({
  handlers: ({ settings, routes }) => ({ openApi: createOpenApi('public', settings, routes) }),
  adminHandlers: { openApi: createAdminDocument(host.settings) },
});

/** A reload may change the title and the branding. */
function createAdminDocument(settings: Host['settings']): Listener {
  const openApi = settings.derive((config) => createOpenApi('admin', config));
  return (req, res) => openApi.current(req, res);
}

/** The document of the public listener is fresh for five minutes, because an update of the proxy may change it. */
const CACHE_CONTROL = { public: 'public, max-age=300', admin: 'no-store' };

function createOpenApi(
  listener: keyof typeof CACHE_CONTROL,
  config: Config,
  routes?: readonly Route[],
): Listener {
  const headers = { 'Cache-Control': CACHE_CONTROL[listener] };
  const { gzipMinBytes } = config.http;
  const describe = async (): Promise<Description> =>
    (await import('./description.js')).describeListener(listener, config.page.title, routes);
  const branding = brandingOf(config);
  // The front page of the admin listener is the status page.
  const hasFrontPage = listener === 'admin' || branding.hasFrontPage;
  const { renderPage, securityHeaders } = createPageLayout({ ...branding, hasFrontPage });
  let description: Promise<Description> | undefined;
  return async function openApi(req, res): Promise<void> {
    // Not before the first request, because most proxies are never asked.
    const { text, page, tryUrl } = await (description ??= describe());
    const { path, query } = contextOf(res).target;
    const url = tryUrl(parseParameters(query));
    if (url !== undefined)
      res.writeHead(303, { 'Cache-Control': 'no-store', Location: url, ...NOSNIFF }).end();
    else if (path.endsWith('.json'))
      await sendText(req, res, { status: 200, contentType: JSON_TYPE, text, headers, gzipMinBytes });
    else {
      const reply = { status: 200, contentType: HTML_TYPE, text: renderPage(page), gzipMinBytes };
      await sendText(req, res, { ...reply, headers: { ...securityHeaders, ...headers } });
    }
  };
}
