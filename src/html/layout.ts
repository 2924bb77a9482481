// The frame of every page: head, name and logo of the service, footer.
import { type Html, html } from './html.js';
import { scriptElement, styleElement } from './style.js';

/** What an operator may say about the service. */
export interface House {
  title: string;
  logoUrl: string | undefined;
  footer: string | undefined;
  footerUrl: string | undefined;
}

export interface Page {
  title: string;
  main: Html;
}

export function layOut({ title, main }: Page, house: House): string {
  const { logoUrl } = house;
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title} – ${house.title}</title>
        <link rel="icon" href="/favicon.ico" type="image/svg+xml" />
        ${styleElement}
      </head>
      <body>
        <header>
          <a href="/"
            >${logoUrl === undefined ? undefined : html`<img src="${logoUrl}" alt="" />`}${house.title}</a
          >
        </header>
        <main>${main}</main>
        <footer>${footerOf(house)}</footer>
        ${scriptElement}
      </body>
    </html> `;
  return page.text;
}

function footerOf({ footer, footerUrl }: House): Html | undefined {
  if (footer === undefined) return undefined;
  return html`<p>${footerUrl === undefined ? footer : html`<a href="${footerUrl}">${footer}</a>`}</p>`;
}

/** The field in which a handle is looked up. */
export const lookUpForm = (handle = ''): Html =>
  html`<form action="/" method="get" role="search">
    <label for="hdl">Handle</label>
    <input
      id="hdl"
      name="hdl"
      value="${handle}"
      placeholder="21.T11998/abc"
      autocomplete="off"
      autocapitalize="off"
      spellcheck="false"
      required
      maxlength="2048"
    />
    <button class="button main">Open</button>
    <button class="button" name="noredirect" value="on">Show the record</button>
  </form>`;
