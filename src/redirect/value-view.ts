// The data of a value as a reader can use them: text, links that are safe to follow, or bytes named as such.
import { handleToPath } from '../handle/handle.js';
import type { HandleValue } from '../handle/value.js';
import { toAddress } from './address.js';
import { type Html, html } from '../html/html.js';
import { isOfType, textOf } from './values.js';

/** Longer data are folded away. */
const MAX_SHOWN_CHARS = 1200;

export function viewOfData(value: HandleValue): Html {
  const text = textOf(value);
  if (text === undefined) return viewOfStructure(value.data);
  if (isOfType(value, 'HS_ALIAS')) return handleLink(text.trim());
  if (isOfType(value, 'EMAIL') && /^[^\s@/:]+@[^\s@/:]+$/.test(text)) return link(`mailto:${text}`, text);
  return (
    linkTo(text) ?? folded(text, /^\s*</.test(text) ? html`<code>${text}</code>` : html`<bdi>${text}</bdi>`)
  );
}

/** A link where the text is an address that may be followed, and nothing else. */
export function linkTo(text: string): Html | undefined {
  const address = toAddress(text, { allowedHosts: undefined });
  return address.ok && !/\s/.test(text.trim()) ? link(address.url, text) : undefined;
}

const link = (url: string, text: string): Html =>
  html`<a href="${url}" rel="noreferrer nofollow"><bdi>${text}</bdi></a>`;

/** A link to the record of another handle. */
export const handleLink = (handle: string): Html =>
  html`<a href="/${handleToPath(handle)}?noredirect"><bdi>${handle}</bdi></a>`;

function viewOfStructure(data: unknown): Html {
  const { format, value } = (data ?? {}) as { format?: unknown; value?: unknown };
  if (typeof value === 'string' && (format === 'base64' || format === 'hex')) {
    return folded(value, html`<span class="quiet">${format}</span> <code>${value}</code>`);
  }
  const references = format === 'vlist' ? value : [value];
  if ((format === 'admin' || format === 'vlist') && isReferences(references))
    return referenceList(references);
  const json = jsonOf(value ?? data);
  return folded(json, html`<pre>${json}</pre>`);
}

/** Nothing at all where a value has no data. */
const jsonOf = (data: unknown): string => (data === undefined ? '' : JSON.stringify(data, null, 2));

interface Reference {
  handle: string;
  index: number;
  permissions?: string;
}

const isReferences = (value: unknown): value is Reference[] =>
  Array.isArray(value) &&
  value.every(
    (entry: Partial<Reference> | null) =>
      typeof entry?.handle === 'string' &&
      typeof entry.index === 'number' &&
      ['string', 'undefined'].includes(typeof entry.permissions),
  );

const referenceList = (references: readonly Reference[]): Html =>
  html`${references.map(({ handle, index, permissions }, at) => [
    at > 0 ? html`<br />` : undefined,
    html`${index}:${handleLink(handle)}`,
    permissions === undefined ? undefined : html` <span class="quiet">${permissions}</span>`,
  ])}`;

function folded(text: string, shown: Html): Html {
  if (text.length <= MAX_SHOWN_CHARS) return shown;
  const beginning = text.slice(0, 80);
  return html`<details>
    <summary><bdi>${beginning}…</bdi> <span class="quiet">${text.length} characters</span></summary>
    ${shown}
  </details>`;
}
