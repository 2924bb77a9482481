// Renders the data of a value: text, safe links, references, or encoded bytes.
import { handleToPath } from '../handle/handle.js';
import { type Html, html } from '../html/html.js';
import { describeRights } from './permission-text.js';
import { toRedirectUrl } from './redirect-url.js';
import type { ShownValue } from './shown-part.js';
import { isOfType, textOf } from './values.js';

/** Longer data are collapsed. */
const MAX_EXPANDED_CHARS = 1200;

export function renderData(value: ShownValue): Html {
  const text = textOf(value);
  if (text === undefined) return renderStructure(value.data);
  // What is cut is no handle and no URL.
  if (value.isCut) return collapsed(text, html`<bdi>${text}</bdi>`);
  if (isOfType(value, 'HS_ALIAS')) return handleLink(text.trim());
  if (isOfType(value, 'EMAIL') && /^[^\s@/:]+@[^\s@/:]+$/.test(text)) return link(`mailto:${text}`, text);
  return (
    urlLink(text) ??
    collapsed(text, /^\s*</.test(text) ? html`<code>${text}</code>` : html`<bdi>${text}</bdi>`)
  );
}

/** A link when the whole text is a URL that may be redirected to. */
function urlLink(text: string): Html | undefined {
  const address = toRedirectUrl(text, { allowedHosts: undefined });
  return address.ok && !/\s/.test(text.trim()) ? link(address.url, text) : undefined;
}

const link = (url: string, text: string): Html =>
  html`<a href="${url}" rel="noreferrer nofollow"><bdi>${text}</bdi></a>`;

const handleLink = (handle: string): Html =>
  html`<a href="/${handleToPath(handle)}?noredirect"><bdi>${handle}</bdi></a>`;

function renderStructure(data: unknown): Html {
  const { format, value } = (data ?? {}) as { format?: unknown; value?: unknown };
  if (typeof value === 'string' && (format === 'base64' || format === 'hex')) {
    return collapsed(value, html`<span class="quiet">${format}</span> <code>${value}</code>`);
  }
  const references = format === 'vlist' ? value : [value];
  if ((format === 'admin' || format === 'vlist') && areReferences(references))
    return referenceList(references);
  const json = jsonOf(value ?? data);
  return collapsed(json, html`<pre>${json}</pre>`);
}

/** Empty for a value without data. */
const jsonOf = (data: unknown): string => (data === undefined ? '' : JSON.stringify(data, null, 2));

interface AdminReference {
  handle: string;
  index: number;
  permissions?: string;
}

const areReferences = (value: unknown): value is AdminReference[] =>
  Array.isArray(value) &&
  value.every(
    (entry: Partial<AdminReference> | null) =>
      typeof entry?.handle === 'string' &&
      typeof entry.index === 'number' &&
      ['string', 'undefined'].includes(typeof entry.permissions),
  );

const referenceList = (references: readonly AdminReference[]): Html =>
  html`${references.map(({ handle, index, permissions }, at) => [
    at > 0 ? html`<br />` : undefined,
    html`${index}:${handleLink(handle)}`,
    permissions === undefined ? undefined : renderRights(permissions),
  ])}`;

function renderRights(permissions: string): Html {
  const words = describeRights(permissions);
  return html` ${words} <span class="quiet">${words === undefined ? permissions : `(${permissions})`}</span>`;
}

function collapsed(text: string, shown: Html): Html {
  if (text.length <= MAX_EXPANDED_CHARS) return shown;
  const beginning = text.slice(0, 80);
  return html`<details>
    <summary><bdi>${beginning}…</bdi> <span class="quiet">${text.length} characters</span></summary>
    ${shown}
  </details>`;
}
