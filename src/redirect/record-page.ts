// The page that shows a record: where it leads, its values, and how fresh this copy of it is.
import { handleToPath } from '../handle/handle.js';
import type { HandleValue } from '../handle/value.js';
import type { FromEntry, StaleReason } from '../resolver/resolution.js';
import { type Html, html } from '../html/html.js';
import { durationInWords, instant, ttlInWords } from './durations.js';
import type { Page } from '../html/layout.js';
import type { Target } from './target.js';
import { viewOfTarget, warningOf } from './target-view.js';
import { viewOfData } from './value-view.js';

export interface Shown {
  handle: string;
  /** Handles whose aliases led here. */
  aliases: readonly string[];
  /** The values that were asked for. */
  values: readonly HandleValue[];
  target: Target;
  resolution: FromEntry;
  authoritative: boolean;
  now: number;
}

export function recordPage(shown: Shown): Page {
  return {
    title: shown.handle,
    main: html`<h1><span class="kind">Handle</span><bdi id="handle">${shown.handle}</bdi></h1>
      ${aliasesOf(shown)} ${staleNote(shown)} ${warningOf(shown.target)} ${actions(shown)}
      <section aria-labelledby="leads">
        <h2 id="leads">Leads to</h2>
        ${viewOfTarget(shown.target)}
      </section>
      <section aria-labelledby="values">
        <h2 id="values">Values</h2>
        ${valuesTable(shown.values)}
      </section>
      <section aria-labelledby="copy">
        <h2 id="copy">This copy</h2>
        ${cacheState(shown)}
      </section>`,
  };
}

function aliasesOf({ aliases }: Shown): Html | undefined {
  if (aliases.length === 0) return undefined;
  return html`<p>
    Reached by the alias ${aliases.map((alias) => html`<bdi>${alias}</bdi> → `)} this handle.
  </p>`;
}

const STALE: Record<StaleReason, string> = {
  error: 'The Handle server does not answer at the moment.',
  late: 'The Handle server takes too long to answer at the moment.',
  resting: 'The Handle server did not answer a moment ago.',
};

function staleNote({ resolution: { stale, entry }, now }: Shown): Html | undefined {
  if (stale === undefined) return undefined;
  return html`<p class="note" role="status">
    <strong>${STALE[stale]}</strong> This is the record as it was ${durationInWords(now - entry.cachedAt)}
    ago; it may have changed since.
  </p>`;
}

function actions({ handle, target }: Shown): Html {
  const path = handleToPath(handle);
  const { address } = target;
  return html`<div class="actions">
    ${address?.ok === true ? html`<a class="button main" href="${address.url}" rel="noreferrer nofollow">Open</a>` : undefined}
    <button class="button" type="button" data-copy="${handle}" hidden>Copy handle</button>
    <a class="button" href="/api/handles/${path}?pretty">JSON</a>
    <a class="button" href="/${path}?noredirect&amp;auth" rel="nofollow">Ask the authority now</a>
    <span id="said" role="status" class="quiet"></span>
  </div>`;
}

// The roles are those of a table anyway; where a narrow screen lays it out as cards, they would be lost.
function valuesTable(values: readonly HandleValue[]): Html {
  if (values.length === 0) return html`<p>The record shows no value that was asked for.</p>`;
  const hasPermissions = values.some(({ permissions }) => permissions !== undefined);
  const names = ['Index', 'Type', 'Data', 'TTL', 'Changed', ...(hasPermissions ? ['Permissions'] : [])];
  return html`<table role="table">
    <thead role="rowgroup">
      <tr role="row">
        ${names.map((name) => html`<th role="columnheader" scope="col">${name}</th>`)}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${values.map((value) => rowOf(value, hasPermissions))}
    </tbody>
  </table>`;
}

const CLASSES: Readonly<Record<string, string>> = { Type: 'wide', Data: 'wide data' };

function rowOf(value: HandleValue, hasPermissions: boolean): Html {
  const { index, type, ttl, timestamp, permissions } = value;
  const cells: [string, Html | string | number][] = [
    ['Index', index],
    ['Type', html`<bdi>${type}</bdi>`],
    ['Data', html`<div>${viewOfData(value)}</div>`],
    ['TTL', ttlInWords(ttl)],
    ['Changed', typeof timestamp === 'string' ? timestamp.replace('T', ' ').replace(/Z$/, '') : ''],
  ];
  if (hasPermissions) cells.push(['Permissions', permissions ?? '']);
  return html`<tr role="row">
    ${cells.map(
      ([name, cell]) => html`<td role="cell" data-label="${name}" class="${CLASSES[name]}">${cell}</td>`,
    )}
  </tr>`;
}

const FROM: Record<FromEntry['from'], string> = {
  memory: 'kept in memory',
  redis: 'kept by another instance',
  upstream: 'just read from the Handle server',
};

function cacheState({ resolution: { entry, from, stale }, authoritative, now }: Shown): Html {
  const left = entry.staleAt - now;
  const life =
    left > 0
      ? `${durationInWords(left)} more, until ${instant(entry.staleAt)}`
      : entry.staleAt > 0
        ? `over since ${instant(entry.staleAt)}`
        : 'over: the record may have changed';
  const source =
    stale !== undefined ? 'an older copy' : authoritative ? 'asked of the authority' : FROM[from];
  return html`<dl>
    <dt>Source</dt>
    <dd>${source}</dd>
    <dt>Age</dt>
    <dd>${durationInWords(now - entry.cachedAt)}, read at ${instant(entry.cachedAt)}</dd>
    <dt>Kept for</dt>
    <dd>${life}</dd>
  </dl>`;
}
