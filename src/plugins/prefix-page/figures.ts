// The figures of a prefix in a month: computed from its counts, and rendered as a page.
import { type SitePage, html } from '../../html/html.js';
import type { PrefixMonth } from './counts.js';

const DAYS = Array.from({ length: 31 }, (_, at) => String(at + 1).padStart(2, '0'));

/** Fractions are null if there is nothing to divide, and rounded down to four digits, so that 1 means all. */
export function figuresOf({ row, ...named }: PrefixMonth) {
  const sumOf = (kind: string, days = DAYS): number =>
    days.reduce((sum, day) => sum + Number(row[`${day}.${kind}`] ?? 0), 0);
  const readsOn = (days = DAYS) => {
    const found = sumOf('found', days);
    return { resolutions: found + sumOf('unknown', days), found, failed: sumOf('failed', days) };
  };
  const reads = readsOn();
  const compared = sumOf('current') + sumOf('outdated');
  return {
    ...named,
    countedSince: row['since'] === undefined ? null : new Date(Number(row['since'])).toISOString(),
    ...reads,
    availability: fractionOf(reads.resolutions, reads.resolutions + reads.failed),
    compared,
    fresh: fractionOf(sumOf('current'), compared),
    days: DAYS.map((day) => ({ date: `${named.month}-${day}`, ...readsOn([day]) })).filter(
      ({ resolutions, failed }) => resolutions + failed > 0,
    ),
  };
}

const fractionOf = (part: number, all: number): number | null =>
  all === 0 ? null : Math.floor((part / all) * 10_000) / 10_000;

export function renderFigures(figures: ReturnType<typeof figuresOf>): SitePage {
  const { prefix, month, instances, countedSince, availability, compared, fresh, days } = figures;
  const facts = [
    [`Resolutions in ${month}`, readsText(figures)],
    ['Availability', percentText(availability, 'requests answered', 'no requests')],
    ['Fresh', percentText(fresh, `${compared} compared responses`, 'not measured')],
    ['Counted since', countedSince?.slice(0, 16).replace('T', ' ').concat(' UTC') ?? 'unknown'],
    ['Counted by', `${instances === 'all' ? 'all instances' : 'one instance'} of this service`],
    ...days.map((day) => [day.date, readsText(day)]),
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

const readsText = (reads: Record<'resolutions' | 'found' | 'failed', number>): string =>
  `${reads.resolutions}, ${reads.found} of them found; ${reads.failed} failed`;
