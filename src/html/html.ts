// HTML for all pages: a tagged template that escapes every value that is not already HTML.

export class Html {
  constructor(readonly text: string) {}
}

type HtmlPart = Html | string | number | undefined | readonly HtmlPart[];

/** @example html`<p>${'<b>'}</p>` // <p>&lt;b&gt;</p> */
export function html(texts: TemplateStringsArray, ...parts: HtmlPart[]): Html {
  return new Html(texts.reduce((whole, text, at) => whole + write(parts[at - 1]) + text));
}

/** Escapes text for elements and quoted attributes in HTML and XML. */
export const escapeText = (text: string): string =>
  text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);

function write(part: HtmlPart): string {
  if (part === undefined) return '';
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(write).join('');
  return escapeText(String(part));
}
