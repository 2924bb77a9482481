// Reads the query parameters that select a location, as HDLProxy does.
import type { WantedAttribute } from './select.js';

export interface LocationQuery {
  /** Location attributes from `locatt`. */
  attributes: readonly WantedAttribute[];
  wantsMetadata: boolean;
  country: string | undefined;
  /** Address from `ip`, which replaces the client address in the country lookup. */
  address: string | undefined;
}

/** Reads `metadata` as an action only, not as a parameter. */
export const readLocationQuery = (parameters: URLSearchParams): LocationQuery => ({
  attributes: readLocationAttributes(parameters),
  wantsMetadata: parameters.get('action')?.toLowerCase() === 'metadata',
  country: parameters.get('country') ?? undefined,
  address: parameters.get('ip') ?? undefined,
});

/** Maximum `locatt` parameters, because each is compared with every location. */
const MAX_LOCATION_ATTRIBUTES = 50;

/** Splits each attribute at its first colon and trims the name. Without a colon, any value matches. */
const readLocationAttributes = (parameters: URLSearchParams): WantedAttribute[] =>
  parameters
    .getAll('locatt')
    .slice(0, MAX_LOCATION_ATTRIBUTES)
    .map((pair) => {
      const [name = '', ...rest] = pair.split(':');
      return { name: name.trim(), value: rest.length === 0 ? undefined : rest.join(':'), by: 'locatt' };
    });
