// The figures of a prefix in a month: computed from its counts, and rendered as a page.
import { type SitePage, html } from '../../html/html.js';
import type { PrefixMonth } from './counts.js';

/** Fractions are null if there is nothing to divide, and rounded down to four digits, so that 1 means all. */
export function figuresOf({ row, ...named }: PrefixMonth) {
  const countOf = (kind: keyof typeof row): number => Number(row[kind] ?? 0);
  const [found, failed, current] = [countOf('found'), countOf('failed'), countOf('current')];
  const resolutions = found + countOf('unknown');
  const compared = current + countOf('outdated');
  return {
    ...named,
    countedSince: row.since === undefined ? null : new Date(Number(row.since)).toISOString(),
    resolutions,
    found,
    failed,
    availability: fractionOf(resolutions, resolutions + failed),
    compared,
    fresh: fractionOf(current, compared),
  };
}

const fractionOf = (part: number, all: number): number | null =>
  all === 0 ? null : Math.floor((part / all) * 10_000) / 10_000;

export function renderFigures(figures: ReturnType<typeof figuresOf>): SitePage {
  const { prefix, month, instances, countedSince, availability, compared, fresh } = figures;
  const { resolutions, found, failed } = figures;
  const facts = [
    [`Resolutions in ${month}`, `${resolutions}, ${found} of them found; ${failed} failed`],
    ['Availability', percentText(availability, 'requests answered', 'no requests')],
    ['Fresh', percentText(fresh, `${compared} compared responses`, 'not measured')],
    ['Counted since', countedSince?.slice(0, 16).replace('T', ' ').concat(' UTC') ?? 'unknown'],
    ['Counted by', `${instances === 'all' ? 'all instances' : 'one instance'} of this service`],
  ];
  return {
    title: `Prefix ${prefix}`,
    main: html`<h1><span class="kind">Prefix</span><bdi dir="ltr">${prefix}</bdi></h1>
      <section>
        <dl>
          ${facts.map(
            ([name, text]) =>
              html`<dt>${name}</dt>
                <dd>${text}</dd>`,
          )}
        </dl>
      </section>
      <p class="quiet"><a href="${encodeURIComponent(prefix)}.json">The figures as JSON</a></p>`,
  };
}

const percentText = (fraction: number | null, whole: string, otherwise: string): string =>
  fraction === null ? otherwise : `${(fraction * 100).toFixed(2)} % of ${whole}`;
