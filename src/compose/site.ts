// Name, logo and footer of the service for all pages.
import type { Config } from '../config/schema.js';
import type { Site } from '../html/layout.js';

export const siteOf = ({ page: { title, logoUrl, footer, footerUrl } }: Pick<Config, 'page'>): Site => ({
  title,
  logoUrl: logoUrl ?? undefined,
  footer: footer ?? undefined,
  footerUrl: footerUrl ?? undefined,
});
