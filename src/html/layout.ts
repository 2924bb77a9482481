// The layout of every page, and the headers that restrict what a page may load.
import { createHash } from 'node:crypto';
import { Html, html } from './html.js';
import { PAGE_SCRIPT, PAGE_STYLE } from './style.js';

/** Name, logo and footer of the service, as the operator configured them. */
export interface PageBranding {
  title: string;
  logoUrl?: string | undefined;
  footer?: string | undefined;
  footerUrl?: string | undefined;
}

/** A page of the public listener. */
export interface SitePage {
  title: string;
  main: Html;
}

interface HtmlDocument {
  title: string;
  icon: { href: string; type: string };
  /** Style and script elements. */
  resources: Html;
  header: Html;
  main: Html;
  footer: Html | undefined;
}

export function renderDocument({ title, icon, resources, header, main, footer }: HtmlDocument): string {
  const document = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title}</title>
        <link rel="icon" href="${icon.href}" type="${icon.type}" />
        ${resources}
      </head>
      <body>
        <header>${header}</header>
        <main>${main}</main>
        <footer>${footer}</footer>
      </body>
    </html> `;
  return document.text;
}

/** Inline, so that a page is one request. */
const PAGE_RESOURCES = new Html(`<style>${PAGE_STYLE}</style><script type="module">${PAGE_SCRIPT}</script>`);

export function renderPage({ title, main }: SitePage, branding: PageBranding): string {
  const { logoUrl, footer, footerUrl } = branding;
  const logo = logoUrl === undefined ? undefined : html`<img src="${logoUrl}" alt="" />`;
  const note = footerUrl === undefined ? footer : html`<a href="${footerUrl}">${footer}</a>`;
  return renderDocument({
    title: `${title} – ${branding.title}`,
    icon: { href: '/favicon.ico', type: 'image/svg+xml' },
    resources: PAGE_RESOURCES,
    header: html`<a href="/">${logo}${branding.title}</a>`,
    main,
    footer: footer === undefined ? undefined : html`<p>${note}</p>`,
  });
}

/** A page loads only from `sources` (directives of a Content-Security-Policy) and is in no frame. */
export const securityHeaders = (sources: Record<string, string>): Record<string, string> => ({
  'Content-Security-Policy': [
    "default-src 'none'",
    ...Object.entries(sources).map(([directive, source]) => `${directive} ${source}`),
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Referrer-Policy': 'no-referrer',
});

/**
 * Headers of the public pages: the inline style and script and the logo, nothing else. Browsers apply
 * `form-action` to the redirects behind a form too, and the look-up form redirects to any site.
 */
export const pageSecurityHeaders = ({ logoUrl }: PageBranding): Record<string, string> =>
  securityHeaders({
    'style-src': hashOf(PAGE_STYLE),
    'script-src': hashOf(PAGE_SCRIPT),
    'img-src': `'self' ${logoUrl === undefined ? '' : originOf(logoUrl)}`.trimEnd(),
    'form-action': "'self' http: https: ftp: mailto:",
  });

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

const originOf = (url: string): string => (url.startsWith('data:') ? 'data:' : new URL(url).origin);
