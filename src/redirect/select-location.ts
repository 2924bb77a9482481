// Chooses one of several locations: explicit attributes, content negotiation, country, weight.
import { type Wanted, readAccept } from './accept.js';
import type { Location, Locations } from './locations.js';

export interface Wishes {
  locationAttributes: readonly (readonly [name: string, value: string])[];
  country: string | undefined;
  accept: string | undefined;
  /** From 0 up to, but not, 1. */
  random: () => number;
}

export interface Choice {
  location: Location;
  by: 'locatt' | 'conneg' | 'country' | 'elsewhere' | 'weighted' | 'only';
  /** True when the same question may lead to another location next time. */
  isDrawn: boolean;
}

/** What a selector leaves, and how that is called. */
interface Narrowed {
  left: readonly Location[];
  by: Choice['by'];
}

type Selector = (locations: readonly Location[], wishes: Wishes) => Narrowed;

/** Those that are known; `address` and `score` need what only a map of the network can tell. */
const SELECTORS = new Map<string, Selector>([
  ['locatt', withAttributes],
  ['country', inCountry],
]);

/**
 * Each selector of the chain narrows the set and is skipped when it would leave nothing; whatever is
 * left at its end is drawn by weight (Technical Manual, chapter 12). A location for content negotiation
 * is no place for everybody: it is chosen by Accept or by its attributes, else only when there is no
 * other.
 */
export function chooseLocation({ chooseBy, locations }: Locations, wishes: Wishes): Choice | undefined {
  const chain = chooseBy.slice(0, chooseBy.includes('weighted') ? chooseBy.indexOf('weighted') : undefined);
  const isNamed =
    chain.includes('locatt') && withAttributes(locations, wishes).left.length < locations.length;
  const negotiated = isNamed ? undefined : negotiate(locations, wishes.accept);
  if (negotiated !== undefined) return { location: negotiated, by: 'conneg', isDrawn: false };
  const plain = locations.filter((location) => !isConneg(location));
  return walk(isNamed || plain.length === 0 ? locations : plain, { chain, wishes });
}

/** Whether a location is chosen by the Accept header. */
export const isConneg = ({ attributes }: Location): boolean =>
  attributes.get('http_role')?.toLowerCase() === 'conneg';

/** A plain URL value, which takes part beside the locations. */
export const isPlainUrl = ({ attributes }: Location): boolean => attributes.get('mode') === 'legacy';

function walk(
  candidates: readonly Location[],
  { chain, wishes }: { chain: readonly string[]; wishes: Wishes },
): Choice | undefined {
  let kept: Narrowed = { left: candidates, by: 'only' };
  for (const name of chain) {
    const narrowed = SELECTORS.get(name)?.(kept.left, wishes) ?? kept;
    if (narrowed.left.length > 0 && narrowed.left.length < kept.left.length) kept = narrowed;
  }
  const [location, ...others] = kept.left;
  if (location === undefined) return undefined;
  return others.length === 0 ? { location, by: kept.by, isDrawn: false } : weighted(kept.left, wishes.random);
}

/** Without any weight all are equal, but for a plain URL: that is the place for who knows no locations. */
function weighted(left: readonly Location[], random: () => number): Choice | undefined {
  const likely = left.filter(({ weight }) => weight > 0);
  const plainUrl = left.find(isPlainUrl);
  if (likely.length === 0 && plainUrl) return { location: plainUrl, by: 'weighted', isDrawn: false };
  const [first, ...others] = likely.length === 0 ? left : likely;
  if (first === undefined) return undefined;
  if (others.length === 0) return { location: first, by: 'weighted', isDrawn: false };
  return { location: draw(first, others, random), by: 'weighted', isDrawn: true };
}

function draw(first: Location, others: readonly Location[], random: () => number): Location {
  const tickets = [first, ...others].map(({ weight }) => weight);
  const isEven = tickets.every((weight) => weight === 0);
  const sum = isEven ? tickets.length : tickets.reduce((total, weight) => total + weight, 0);
  let rest = random() * sum;
  const drawn = [first, ...others].find(({ weight }) => (rest -= isEven ? 1 : weight) < 0);
  return drawn ?? first;
}

/** Each attribute that is asked for narrows on its own. */
function withAttributes(
  locations: readonly Location[],
  { locationAttributes }: Pick<Wishes, 'locationAttributes'>,
): Narrowed {
  const left = locationAttributes.reduce((kept, [name, value]) => {
    const matching = kept.filter(({ attributes }) => attributes.get(name) === value);
    return matching.length === 0 ? kept : matching;
  }, locations);
  return { left, by: 'locatt' };
}

/** Where no location is for the caller's country, or nobody knows it, those of other countries fall away. */
function inCountry(locations: readonly Location[], { country }: Pick<Wishes, 'country'>): Narrowed {
  const countryOf = ({ attributes }: Location): string | undefined =>
    attributes.get('country')?.toLowerCase();
  const wanted = country?.toLowerCase();
  const matching = locations.filter((location) => wanted !== undefined && countryOf(location) === wanted);
  if (matching.length > 0) return { left: matching, by: 'country' };
  return { left: locations.filter((location) => countryOf(location) === undefined), by: 'elsewhere' };
}

/** The location whose media type is wanted most, when it is wanted more than a page. */
function negotiate(locations: readonly Location[], accept: string | undefined): Location | undefined {
  const wanted = readAccept(accept);
  let best: Location | undefined;
  let bestQuality = wanted.qualityOf('text/html');
  for (const location of locations.filter(isConneg)) {
    const quality = qualityOfLocation(location, wanted);
    if (quality > bestQuality) [best, bestQuality] = [location, quality];
  }
  return best;
}

/** Without a media type of its own it serves whatever is asked for instead of a page. */
function qualityOfLocation({ attributes }: Location, wanted: Wanted): number {
  const type = attributes.get('media_type') ?? attributes.get('type');
  if (type === undefined) return wanted.highest;
  return wanted.qualityOf((type.split(';', 1)[0] ?? '').trim().toLowerCase());
}
