// Renders the pages of the redirect interface with the name, logo and colour of the service.
import type { Started } from '../../app/plugin.js';
import type { Config } from '../../config/schema.js';
import { brandingOf, createPageLayout } from '../../html/html.js';
import type { Pages } from '../../redirect/extension.js';
import { frontPage, problemPage } from './pages.js';
import { recordPage } from './record-page.js';

export const start = (): Started => ({ redirect: (settings) => ({ pages: createPages(settings) }) });

function createPages(config: Config): Pages {
  const branding = brandingOf(config);
  const { renderPage, securityHeaders } = createPageLayout(branding);
  return {
    securityHeaders,
    front: renderPage(frontPage(branding)),
    problem: (view) => renderPage(problemPage({ ...view, branding })),
    *record(view) {
      return renderPage(yield* recordPage(view));
    },
  };
}
