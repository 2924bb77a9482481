// Renders record values as HTML: truncates them, and describes data and permissions.
import { z } from 'zod';
import { handleToPath } from '../../handle/handle.js';
import { RIGHT } from '../../handle/value-data.js';
import { type HandleValue, lastFourPermissions } from '../../handle/value.js';
import { type Html, html } from '../../html/html.js';
import { FIRST_ISSUE } from '../../http/request-body.js';
import { toRedirectUrl } from '../../redirect/target.js';
import { isOfType, textOf } from '../../redirect/values.js';

/** Maximum values per page. Real records have a few dozen at most. */
const MAX_SHOWN_VALUES = 200;
const MAX_SHOWN_CHARS = 64 * 1024;
/** Maximum data length per value, so that a long value leaves room for later values. */
const MAX_VALUE_CHARS = 16 * 1024;
/** Maximum total length of a value's type, TTL, timestamp and permissions. */
const MAX_FIELD_CHARS = 1000;

export interface ShownValue extends HandleValue {
  isCut: boolean;
}

export function shownPart(values: readonly HandleValue[]): ShownValue[] {
  const shown: ShownValue[] = [];
  let left = MAX_SHOWN_CHARS;
  for (const value of values) {
    if (shown.length === MAX_SHOWN_VALUES || left <= 0) break;
    const data = createCutter(Math.min(left, MAX_VALUE_CHARS));
    const fields = createCutter(MAX_FIELD_CHARS);
    const { type, ttl, timestamp, permissions } = value;
    shown.push({
      ...(fields.cut({ type, ttl, timestamp, permissions }) as HandleValue),
      index: value.index,
      data: data.cut(value.data),
      isCut: data.isCut() || fields.isCut(),
    });
    left -= data.usedChars() + fields.usedChars();
  }
  return shown;
}

/** Cost per element, so that empty elements count. */
const ELEMENT_CHARS = 4;
/** Cost per nesting level, because indentation lengthens deeply nested JSON. */
const INDENT_CHARS = 2;

/** Creates a cutter whose calls share one budget. */
function createCutter(maxChars: number) {
  let used = 0;
  let isCut = false;
  const hasRoom = (): boolean => {
    isCut ||= used >= maxChars;
    return used < maxChars;
  };
  /** Copies the start of a JSON value as valid JSON. */
  function cut(json: unknown, depth = 0): unknown {
    if (typeof json === 'string') return cutText(json);
    used += ELEMENT_CHARS + depth * INDENT_CHARS;
    if (Array.isArray(json)) return cutList(json, depth + 1);
    return typeof json === 'object' && json !== null ? cutObject(json, depth + 1) : json;
  }
  function cutText(text: string): string {
    const shown = text.slice(0, Math.max(0, maxChars - used));
    isCut ||= shown.length < text.length;
    used += shown.length;
    return shown;
  }
  function cutList(list: readonly unknown[], depth: number): unknown[] {
    const shown: unknown[] = [];
    for (const element of list) {
      if (!hasRoom()) break;
      shown.push(cut(element, depth));
    }
    // Drops the last element, which may be truncated: a reference without its index is invalid.
    if (isCut && shown.length > 1) shown.pop();
    return shown;
  }
  function cutObject(object: object, depth: number): object {
    const shown: [string, unknown][] = [];
    for (const name in object) {
      if (!hasRoom()) break;
      shown.push([cutText(name), cut((object as Record<string, unknown>)[name], depth)]);
    }
    return Object.fromEntries(shown);
  }
  return { cut, usedChars: () => used, isCut: () => isCut };
}

/** Maximum length of data shown in full; longer data are collapsed. */
const MAX_EXPANDED_CHARS = 1200;

export function renderData(value: ShownValue): Html {
  const text = textOf(value);
  if (text === undefined) return renderStructure(value.data);
  // Truncated text must not become a link.
  if (value.isCut) return collapsed(text, html`<bdi>${text}</bdi>`);
  if (isOfType(value, 'HS_ALIAS')) return handleLink(text.trim());
  if (isOfType(value, 'EMAIL') && /^[^\s@/:]+@[^\s@/:]+$/.test(text)) return link(`mailto:${text}`, text);
  return (
    urlLink(text) ??
    collapsed(text, /^\s*</.test(text) ? html`<code>${text}</code>` : html`<bdi>${text}</bdi>`)
  );
}

/** Returns a link if the whole text is a valid redirect target. */
function urlLink(text: string): Html | undefined {
  const address = toRedirectUrl(text, { allowedHosts: undefined });
  return address.ok && !/\s/.test(text.trim()) ? link(address.url, text) : undefined;
}

const link = (url: string, text: string): Html =>
  html`<a href="${url}" rel="noreferrer nofollow"><bdi dir="ltr">${text}</bdi></a>`;

/** Returns nothing for an empty handle: a link without text has no name. */
const handleLink = (handle: string): Html =>
  handle === ''
    ? html``
    : html`<a href="/${handleToPath(handle)}?noredirect"><bdi dir="ltr">${handle}</bdi></a>`;

function renderStructure(data: unknown): Html {
  const { format, value } = (data ?? {}) as { format?: unknown; value?: unknown };
  if (typeof value === 'string' && (format === 'base64' || format === 'hex'))
    return collapsed(value, html`<span class="quiet">${format}</span> <code>${value}</code>`);
  const references = adminReferences.safeParse(format === 'vlist' ? value : [value], FIRST_ISSUE);
  if ((format === 'admin' || format === 'vlist') && references.success) return referenceList(references.data);
  const json = jsonOf(value ?? data);
  return collapsed(json, html`<pre>${json}</pre>`);
}

/** Returns an empty string for a value without data. */
const jsonOf = (data: unknown): string => (data === undefined ? '' : JSON.stringify(data, null, 2));

const adminReferences = z.array(
  z.object({ handle: z.string(), index: z.number(), permissions: z.string().optional() }),
);

const referenceList = (references: z.output<typeof adminReferences>): Html =>
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

/** Joins items as `a, b and c`. `Intl.ListFormat` would load its data, for 5 ms at each start. */
export const joinedItems = (items: readonly string[]): string =>
  [items.slice(0, -1).join(', '), ...items.slice(-1)].filter((part) => part !== '').join(' and ');

const verbsOf = (read: string | undefined, write: string | undefined): string =>
  joinedItems([read === '1' ? 'read' : '', write === '1' ? 'write' : '']) || 'neither read nor write';

/** Describes the four permission digits: admin read, admin write, public read, public write. */
export function describeAccess(permissions: string | undefined): string {
  const [adminRead, adminWrite, publicRead, publicWrite] = lastFourPermissions(permissions);
  return `everyone may ${verbsOf(publicRead, publicWrite)}, administrators may ${verbsOf(adminRead, adminWrite)}`;
}

const RIGHTS: readonly [bit: number, name: string][] = [
  [RIGHT.addHandle, 'create handles'],
  [RIGHT.deleteHandle, 'delete handles'],
  [RIGHT.addDerivedPrefix, 'create derived prefixes'],
  [RIGHT.deleteDerivedPrefix, 'delete derived prefixes'],
  [RIGHT.modifyValue, 'change values'],
  [RIGHT.removeValue, 'remove values'],
  [RIGHT.addValue, 'add values'],
  [RIGHT.readValue, 'read values'],
  [RIGHT.modifyAdmin, 'change administrators'],
  [RIGHT.removeAdmin, 'remove administrators'],
  [RIGHT.addAdmin, 'add administrators'],
  [RIGHT.listHandles, 'list handles'],
];

/** Describes the twelve HS_ADMIN digits, highest bit first; returns undefined for any other text. */
function describeRights(permissions: string): string | undefined {
  if (!/^[01]{12}$/.test(permissions)) return undefined;
  const bits = parseInt(permissions, 2);
  const names = (areGranted: boolean): string[] =>
    RIGHTS.filter(([bit]) => ((bits & bit) !== 0) === areGranted).map(([, name]) => name);
  const granted = names(true);
  const missing = names(false);
  if (missing.length === 0) return 'may do everything';
  if (granted.length === 0) return 'may do nothing';
  return granted.length > missing.length
    ? `may do everything, except ${joinedItems(missing)}`
    : `may ${joinedItems(granted)}`;
}
