// The table of the values on the record page, with lifetimes and permissions in words.
import { DEFAULT_PERMISSIONS, type HandleValue } from '../handle/value.js';
import { type Html, html } from '../html/html.js';
import { describeAccess } from './permission-text.js';
import { type ShownValue, shownPart } from './shown-part.js';
import { exactDuration, formatInstant } from './time-text.js';
import { renderData } from './value-html.js';

/** Permissions that all values share are one sentence below the table. `jsonUrl`: where all values are. */
export function valuesTable(values: readonly HandleValue[], jsonUrl: string): Html {
  if (values.length === 0) return html`<p>The record has no public value that matches the request.</p>`;
  const shown = shownPart(values);
  const [access = '', ...others] = new Set(shown.map(({ permissions }) => describeAccess(permissions)));
  const isShared = others.length === 0;
  const names = ['Index', 'Type', 'Data', 'TTL', 'Changed', ...(isShared ? [] : ['Permissions'])];
  return html`${restNote(values, shown, jsonUrl)} ${renderTable(names, shown)}
  ${isShared ? html`<p class="quiet">Permissions of each value: ${access}.</p>` : undefined}`;
}

function restNote(
  values: readonly HandleValue[],
  shown: readonly ShownValue[],
  jsonUrl: string,
): Html | undefined {
  const isWhole = shown.length === values.length;
  if (isWhole && !shown.some(({ isCut }) => isCut)) return undefined;
  const count = (number: number): string => number.toLocaleString('en-GB');
  const part = isWhole
    ? 'This page shows only the beginning of long values.'
    : `This page shows the first ${count(shown.length)} of ${count(values.length)} values.`;
  return html`<p class="note">${part} <a href="${jsonUrl}">The JSON has everything.</a></p>`;
}

// The roles are explicit because `display: block` on narrow screens removes those of a table.
const renderTable = (names: readonly string[], values: readonly ShownValue[]): Html =>
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

const CONTENT: Readonly<Record<string, (value: ShownValue) => Html | string | number>> = {
  Index: ({ index }) => index,
  Type: ({ type }) => html`<bdi>${type}</bdi>`,
  Data: (value) =>
    html`<div>
      ${renderData(value)}${value.isCut ? html` <span class="quiet">Cut here.</span>` : undefined}
    </div>`,
  TTL: ({ ttl }) => renderTtl(ttl),
  Changed: ({ timestamp }) =>
    typeof timestamp === 'string' ? timestamp.replace('T', ' ').replace(/Z$/, '') : '',
  Permissions: ({ permissions = DEFAULT_PERMISSIONS }) =>
    html`<div>${describeAccess(permissions)} <code>${permissions}</code></div>`,
};

const renderCell = (name: string, value: ShownValue): Html =>
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
