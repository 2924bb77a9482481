// A tagged template for HTML that escapes every value except `Html`.

export class Html {
  constructor(readonly text: string) {}
}

type HtmlPart = Html | string | number | undefined | readonly HtmlPart[];

/** @example html`<p>${'<b>'}</p>` // <p>&lt;b&gt;</p> */
export function html(texts: TemplateStringsArray, ...parts: HtmlPart[]): Html {
  return new Html(texts.reduce((whole, text, at) => whole + write(parts[at - 1]) + text));
}

/** Escapes text for HTML and XML elements and quoted attributes. */
export const escapeText = (text: string): string =>
  text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);

function write(part: HtmlPart): string {
  if (part === undefined) return '';
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(write).join('');
  return escapeText(String(part));
}
