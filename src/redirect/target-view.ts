// Where a record leads and why, in words; and a warning where it leads somewhere that is not gone to.
import { type Html, html } from '../html/html.js';
import type { Address } from './address.js';
import { type Choice, isPlainUrl } from './select-location.js';
import type { Chosen, Target } from './target.js';

const REASONS: Record<Choice['by'], string> = {
  locatt: 'it has the attributes that were asked for',
  conneg: 'its media type is what was asked for',
  country: 'it is the one for this country',
  elsewhere: 'it is for no country in particular',
  weighted: 'it is the only one left that has a weight',
  only: 'it is the only one for pages',
};

const PROBLEMS: Record<Extract<Address, { ok: false }>['problem'], string> = {
  scheme: 'only http, https, ftp and mailto addresses are opened from here',
  malformed: 'it is not a complete address',
  'too-long': 'it is too long to be sent as a redirect',
  host: 'its host is not among those this service redirects to',
};

export function viewOfTarget({ chosen, address, status }: Target): Html {
  if (chosen === undefined || address === undefined) {
    return html`<p>
      Nowhere: no value shown here is a URL or a 10320/loc. Opening the handle shows this page.
    </p>`;
  }
  const why = html`<p class="quiet">${whyOf(chosen)}</p>`;
  if (!address.ok)
    return html`<p><code>${chosen.value}</code></p>
      ${why}`;
  return html`<p>
      <a href="${address.url}" rel="noreferrer nofollow"><bdi>${address.url}</bdi></a> (${status})
    </p>
    ${why}`;
}

/** For the top of the page: this link is not followed for a reason. */
export function warningOf({ address }: Target): Html | undefined {
  if (address === undefined || address.ok) return undefined;
  return html`<p class="note bad" role="alert">
    The target of this handle is not opened: ${PROBLEMS[address.problem]}.
  </p>`;
}

function whyOf({ location, index, type }: Chosen): string {
  const value = `${type} value at index ${index}`;
  if (location === undefined) return `It is the first ${value.replace(' at', ', at')}.`;
  if (isPlainUrl(location.location)) {
    const reason =
      location.by === 'weighted' ? 'no location left beside it has a weight' : REASONS[location.by];
    return `The first ${value.replace(' at', ', at')}: ${reason}.`;
  }
  const id = location.location.attributes.get('id');
  const name = id === undefined ? 'A location' : `Location ${id}`;
  if (location.among === 1) return `The only location of the ${value}.`;
  return `${name}, one of ${location.among} in the ${value}: ${location.isDrawn ? 'drawn by lot' : REASONS[location.by]}.`;
}
