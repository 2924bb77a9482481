// HTML pages: escaping, the layout of every page, and the headers that restrict what pages may load.
import { createHash } from 'node:crypto';
import type { Config } from '../config/schema.js';
import { PAGE_SCRIPT, pageStyle } from './style.js';

export const HTML_TYPE = 'text/html;charset=utf-8';

export class Html {
  constructor(readonly text: string) {}
}

type HtmlPart = Html | string | number | undefined | readonly HtmlPart[];

/** @example html`<p>${'<b>'}</p>` // <p>&lt;b&gt;</p> */
export function html(texts: TemplateStringsArray, ...parts: HtmlPart[]): Html {
  return new Html(texts.reduce((whole, text, at) => whole + writePart(parts[at - 1]) + text));
}

/** Escapes text for HTML and XML elements and quoted attributes. */
export const escapeText = (text: string): string =>
  text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);

/** Maximum length of a name within a sentence. */
const MAX_NAME_CHARS = 100;

/** Returns the beginning of a text of a record or server, which may be megabytes long. */
export const shorten = (text: string, maxChars = MAX_NAME_CHARS): string =>
  text.length > maxChars ? `${text.slice(0, maxChars)}…` : text;

function writePart(part: HtmlPart): string {
  if (part === undefined) return '';
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(writePart).join('');
  return escapeText(String(part));
}

/** The service's name, logo, colour and footer, and the prefix for the example in the lookup form. */
export type PageBranding = Config['page'] & { examplePrefix?: string | undefined; hasFrontPage: boolean };

export const brandingOf = (config: Config): PageBranding => ({
  ...config.page,
  examplePrefix: ownPrefix(config),
  hasFrontPage: config.redirect.enabled,
});

/** The first prefix in `upstreams` without wildcard or `0.`, else the first in `v2.prefixes`. */
function ownPrefix({ upstreams, v2 }: Config): string | undefined {
  const isOrdinary = (pattern: string): boolean => !pattern.includes('*') && !pattern.startsWith('0.');
  return upstreams.flatMap(({ prefixes }) => prefixes).find(isOrdinary) ?? v2.prefixes[0];
}

/** A page on the public listener. */
export interface SitePage {
  title: string;
  main: Html;
}

interface HtmlDocument {
  title: string;
  icon: { href: string; type: string };
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

export function createPageLayout(branding: PageBranding) {
  const { logoUrl, hasFrontPage } = branding;
  const style = pageStyle(branding.accentColor);
  const logo = logoUrl === undefined ? undefined : html`<img src="${logoUrl}" alt="" />`;
  const frame = {
    icon: { href: '/favicon.ico', type: 'image/svg+xml' },
    // Inlined, so that a page needs a single request.
    resources: new Html(`<style>${style}</style><script type="module">${PAGE_SCRIPT}</script>`),
    // Without a front page, the name is a placeholder link, which has the same style but leads nowhere.
    header: html`<a${hasFrontPage ? html` href="/"` : undefined}>${logo}${branding.title}</a>`,
    footer: renderFooter(branding),
  };
  return {
    renderPage: ({ title, main }: SitePage): string =>
      renderDocument({ ...frame, title: `${title} – ${branding.title}`, main }),
    /** Headers for every page. */
    securityHeaders: pageSecurityHeaders(style, logoUrl),
  };
}

function renderFooter({ footer, footerLinks }: PageBranding): Html {
  const links = footerLinks.map(({ text, url }) => html`<li><a href="${url}">${text}</a></li>`);
  return html`${footer === undefined ? undefined : html`<p>${footer}</p>`}
  ${
    links.length === 0
      ? undefined
      : html`<ul>
          ${links}
        </ul>`
  }`;
}

/** Headers that forbid framing and restrict loading to the `sources` by directive of the policy. */
export const securityHeaders = (sources: Record<string, string>): Record<string, string> => ({
  'Content-Security-Policy': [
    "default-src 'none'",
    ...Object.entries(sources).map(([directive, source]) => `${directive} ${source}`),
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Referrer-Policy': 'no-referrer',
});

/** `form-action` allows any site, because browsers apply it to redirects, also those of the lookup form. */
const pageSecurityHeaders = (style: string, logoUrl: string | undefined): Record<string, string> =>
  securityHeaders({
    'style-src': sourceHash(style),
    'script-src': sourceHash(PAGE_SCRIPT),
    'img-src': `'self' ${logoUrl === undefined ? '' : logoOrigin(logoUrl)}`.trimEnd(),
    'form-action': "'self' http: https: ftp: mailto:",
  });

const sourceHash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

const logoOrigin = (url: string): string => (url.startsWith('data:') ? 'data:' : new URL(url).origin);
