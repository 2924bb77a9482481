// Renders the record page: redirect target, values and cache state.
import { handleToPath } from '../../handle/handle.js';
import { DEFAULT_PERMISSIONS, type HandleValue } from '../../handle/value.js';
import { type Html, type SitePage, html, shorten } from '../../html/html.js';
import type { FromEntry, StaleReason } from '../../resolver/resolution.js';
import type { ChosenTarget, RecordView, RedirectTarget, RedirectUrl } from '../../redirect/extension.js';
import { type ShownValue, describeAccess, joinedItems, renderData, shownPart } from './value-html.js';
import { type Steps, mapInSteps } from '../../time-slicer.js';

export function* recordPage<F>(view: RecordView, render: (page: SitePage) => F): Steps<F> {
  return render(pageOf(view, yield* valuesTable(view.values, jsonUrlOf(view.handle))));
}

function pageOf(view: RecordView, values: Html): SitePage {
  return {
    title: view.handle,
    main: html`<h1><span class="kind">Handle</span> <bdi id="handle" dir="ltr">${view.handle}</bdi></h1>
      ${renderAliases(view)} ${staleNote(view)} ${refusedNote(view.target)} ${actions(view)}
      <section aria-labelledby="target">
        <h2 id="target">Redirects to</h2>
        ${renderTarget(view.target)}
      </section>
      <section aria-labelledby="values">
        <h2 id="values">Values</h2>
        ${values}
      </section>
      <section aria-labelledby="cache">
        <h2 id="cache">Cache</h2>
        ${cacheState(view)}
      </section>`,
  };
}

function renderAliases({ aliases }: RecordView): Html | undefined {
  if (aliases.length === 0) return undefined;
  return html`<p>
    Resolved from the alias ${aliases.map((alias) => html`<bdi dir="ltr">${alias}</bdi> → `)} this handle.
  </p>`;
}

const STALE: Record<StaleReason, string> = {
  error: 'The Handle server does not answer at the moment.',
  timeout: 'The Handle server takes too long to answer at the moment.',
  backoff: 'The Handle server did not answer a moment ago.',
};

function staleNote({ resolution: { stale, entry }, now }: RecordView): Html | undefined {
  if (stale === undefined) return undefined;
  return html`<p class="note" role="status">
    <strong>${STALE[stale]}</strong> This is the record as it was ${coarseDuration(now - entry.requestedAt)}
    ago; it may have changed since.
  </p>`;
}

const REFUSED: Record<Extract<RedirectUrl, { ok: false }>['problem'], string> = {
  scheme: 'only http, https, ftp and mailto URLs are allowed',
  malformed: 'the URL is invalid',
  'too-long': 'the URL is too long for a redirect',
  host: 'its host is not one of the allowed hosts',
};

function refusedNote({ url }: RedirectTarget): Html | undefined {
  if (url === undefined || url.ok) return undefined;
  return html`<p class="note bad" role="alert">The redirect is refused: ${REFUSED[url.problem]}.</p>`;
}

const jsonUrlOf = (handle: string): string => `/api/handles/${handleToPath(handle)}?pretty`;

function actions({ handle, target: { url } }: RecordView): Html {
  const path = handleToPath(handle);
  return html`<div class="actions">
    ${
      url?.ok === true
        ? html`<a class="button main" href="${url.url}" rel="noreferrer nofollow">Open</a>`
        : undefined
    }
    <a class="button" id="link" href="/${path}" rel="nofollow">Persistent link</a>
    <a class="button" href="${jsonUrlOf(handle)}">JSON</a>
    <a class="button" href="/${path}?noredirect&amp;auth" rel="nofollow">Reload from the Handle server</a>
    <span id="copy-status" role="status" class="quiet"></span>
  </div>`;
}

/** Maximum displayed length of an invalid target, which may be as long as the record. */
const MAX_TARGET_CHARS = 2000;

function renderTarget({ chosen, url, status }: RedirectTarget): Html {
  if (chosen === undefined || url === undefined)
    return html`<p>No value shown here is a URL or a 10320/loc, so the handle opens this page.</p>`;
  const target = url.ok
    ? html`<a href="${url.url}" rel="noreferrer nofollow"><bdi dir="ltr">${url.url}</bdi></a> (${status})`
    : html`<code dir="ltr">${chosen.text.slice(0, MAX_TARGET_CHARS)}</code>`;
  return html`<p>${target}</p>
    <p class="quiet">${reasonText(chosen)}</p>`;
}

/** Describes the choice of a URL value, unless a plugin has chosen the target. */
function reasonText({ reason, value }: ChosenTarget): string {
  if (reason !== undefined) return reason();
  const url = value && `the ${shorten(value.type)} value at index ${value.index}`;
  return `It is ${url ?? 'the only one'}, the first of its type.`;
}

const SOURCE: Record<FromEntry['from'], string> = {
  memory: 'memory',
  redis: 'Redis',
  upstream: 'Handle server, just now',
};

function cacheState(view: RecordView): Html {
  const { resolution, authoritative, now, wallTime } = view;
  const { entry, from, stale } = resolution;
  const dateOf = (time: number): string => formatInstant(time - now + wallTime);
  const source =
    stale !== undefined ? 'stale entry' : authoritative ? 'Handle server, on request' : SOURCE[from];
  return html`<dl>
    <dt>Source</dt>
    <dd>${source}</dd>
    <dt>Age</dt>
    <dd>${coarseDuration(now - entry.requestedAt)}, read at ${dateOf(entry.requestedAt)}</dd>
    <dt>Expires</dt>
    <dd>${expiryText(entry.staleAt, now, dateOf)}</dd>
  </dl>`;
}

/** Describes the expiry time. An invalidated entry has `staleAt` 0. */
function expiryText(staleAt: number, now: number, dateOf: (time: number) => string): string {
  if (staleAt > now) return `in ${coarseDuration(staleAt - now)}, at ${dateOf(staleAt)}`;
  return staleAt > 0 ? `expired at ${dateOf(staleAt)}` : 'expired: the record may have changed';
}

/** Renders the values, with permissions common to all below the table. `jsonUrl`: of the full record. */
export function* valuesTable(values: readonly HandleValue[], jsonUrl: string): Steps<Html> {
  const shown = shownPart(values);
  const [access = '', ...others] = new Set(shown.map(({ permissions }) => describeAccess(permissions)));
  const isShared = others.length === 0;
  const names = ['Index', 'Type', 'Data', 'TTL', 'Changed', ...(isShared ? [] : ['Permissions'])];
  const rows = yield* mapInSteps(shown, (value) => renderRow(names, value));
  return rows.length === 0
    ? html`<p>The record has no public value that matches the request.</p>`
    : html`${restNote(values, shown, jsonUrl)} ${renderTable(names, rows)}
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

// Sets roles explicitly, because `display: block` on narrow screens removes the implicit table roles.
const renderTable = (names: readonly string[], rows: readonly Html[]): Html =>
  html`<table role="table">
    <thead role="rowgroup">
      <tr role="row">
        ${names.map((name) => html`<th role="columnheader" scope="col">${name}</th>`)}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${rows}
    </tbody>
  </table>`;

const renderRow = (names: readonly string[], value: ShownValue): Html =>
  html`<tr role="row">
    ${names.map((name) => renderCell(name, value))}
  </tr>`;

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
    typeof timestamp === 'string' ? timestamp.replace('T', ' ').replace(/Z$/, ' UTC') : '',
  Permissions: ({ permissions = DEFAULT_PERMISSIONS }) =>
    html`<div>${describeAccess(permissions)} <code>${permissions}</code></div>`,
};

const renderCell = (name: string, value: ShownValue): Html =>
  html`<td role="cell" data-label="${name}" class="${CLASSES[name]}">${CONTENT[name]?.(value)}</td>`;

function renderTtl(ttl: HandleValue['ttl']): Html | string {
  if (ttl === undefined) return '';
  if (typeof ttl === 'string') {
    const instant = Date.parse(ttl);
    return `until ${Number.isNaN(instant) ? ttl : formatInstant(instant)}`;
  }
  if (!Number.isSafeInteger(ttl)) return `${ttl} s`;
  return ttl <= 0 ? 'not cached' : html`<time datetime="PT${ttl}S">${exactDuration(ttl)}</time>`;
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const;

const valueCount = (count: number, unit: string): string =>
  count === 1 ? `one ${unit}` : `${count} ${unit}s`;

/** Formats whole seconds exactly: `90_000` becomes `one day and one hour`. */
function exactDuration(seconds: number): string {
  let left = seconds;
  const parts: string[] = [];
  for (const [unit, unitSeconds] of UNITS) {
    const count = Math.floor(left / unitSeconds);
    left -= count * unitSeconds;
    if (count > 0) parts.push(valueCount(count, unit));
  }
  return joinedItems(parts);
}

/** Rounds down, so that a page keeps its ETag for a minute: `7_300_000` becomes `2 hours`. */
function coarseDuration(ms: number): string {
  for (const [unit, unitSeconds] of UNITS.slice(0, -1)) {
    const count = Math.floor(ms / 1000 / unitSeconds);
    if (count >= 2 || (count === 1 && unit !== 'day')) return valueCount(count, unit);
  }
  return 'less than a minute';
}

const formatInstant = (ms: number): string =>
  `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
