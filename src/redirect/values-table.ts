// The table of the values on the record page, with lifetimes and permissions in words.
import { DEFAULT_PERMISSIONS, type HandleValue } from '../handle/value.js';
import { type Html, html } from '../html/html.js';
import { describeAccess } from './permission-text.js';
import { exactDuration, formatInstant } from './time-text.js';
import { renderData } from './value-html.js';

/** Permissions that all values share are one sentence below the table. */
export function valuesTable(values: readonly HandleValue[]): Html {
  if (values.length === 0) return html`<p>The record has no public value that matches the request.</p>`;
  const [access = '', ...others] = new Set(values.map(({ permissions }) => describeAccess(permissions)));
  const isShared = others.length === 0;
  const names = ['Index', 'Type', 'Data', 'TTL', 'Changed', ...(isShared ? [] : ['Permissions'])];
  return html`${renderTable(names, values)}
  ${isShared ? html`<p class="quiet">Permissions of each value: ${access}.</p>` : undefined}`;
}

// The roles are explicit because `display: block` on narrow screens removes those of a table.
const renderTable = (names: readonly string[], values: readonly HandleValue[]): Html =>
  html`<table role="table">
    <thead role="rowgroup">
      <tr role="row">
        ${names.map((name) => html`<th role="columnheader" scope="col">${name}</th>`)}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${values.map(
        (value) =>
          html`<tr role="row">
            ${names.map((name) => renderCell(name, value))}
          </tr>`,
      )}
    </tbody>
  </table>`;

const CLASSES: Readonly<Record<string, string>> = {
  Type: 'wide',
  Data: 'wide data',
  TTL: 'wide',
  Permissions: 'wide',
};

const CONTENT: Readonly<Record<string, (value: HandleValue) => Html | string | number>> = {
  Index: ({ index }) => index,
  Type: ({ type }) => html`<bdi>${type}</bdi>`,
  Data: (value) => html`<div>${renderData(value)}</div>`,
  TTL: ({ ttl }) => renderTtl(ttl),
  Changed: ({ timestamp }) =>
    typeof timestamp === 'string' ? timestamp.replace('T', ' ').replace(/Z$/, '') : '',
  Permissions: ({ permissions = DEFAULT_PERMISSIONS }) =>
    html`<div>${describeAccess(permissions)} <code>${permissions}</code></div>`,
};

const renderCell = (name: string, value: HandleValue): Html =>
  html`<td role="cell" data-label="${name}" class="${CLASSES[name]}">${CONTENT[name]?.(value)}</td>`;

/** Seconds, or an absolute time. */
function renderTtl(ttl: HandleValue['ttl']): Html | string {
  if (ttl === undefined) return '';
  if (typeof ttl === 'string') {
    const instant = Date.parse(ttl);
    return `until ${Number.isNaN(instant) ? ttl : formatInstant(instant)}`;
  }
  if (!Number.isSafeInteger(ttl)) return `${ttl} s`;
  return ttl <= 0 ? 'not cached' : html`<time datetime="PT${ttl}S">${exactDuration(ttl)}</time>`;
}
