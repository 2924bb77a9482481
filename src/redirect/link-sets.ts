// Selects the format of a link set (RFC 9264).
import Negotiator from 'negotiator';
import type { RedirectQuery } from './request.js';

export const LINKSET_JSON = 'application/linkset+json';
export const LINKSET_TEXT = 'application/linkset';

const LINKSET_TYPES = new Map([
  ['json', LINKSET_JSON],
  ['text', LINKSET_TEXT],
]);

/** Selects the media type of a link set by `format`, or else by Accept. */
export function linksetType({ linksetFormat = '' }: RedirectQuery, accept: string | undefined): string {
  const negotiator = new Negotiator({ headers: { accept: LINKSET_TYPES.get(linksetFormat) ?? accept } });
  return negotiator.mediaTypes([...LINKSET_TYPES.values()])[0] ?? LINKSET_JSON;
}
