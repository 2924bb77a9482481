// Selects one of the locations for a request: locatt, address, country, score, weight. Pure.
import { isInRanges } from './address-range.js';
import { readDouble } from './java-double.js';
import type { Location } from './location-list.js';
import type { WantedAttribute } from './negotiate.js';

/** What the selection depends on besides the locations. */
export interface RequestFacts {
  /** Of the query, then those of content negotiation. */
  attributes: readonly WantedAttribute[];
  country: string | undefined;
  /** Of the client. */
  address: string;
  /** From 0 up to, but not including, 1. */
  random: number;
}

/** What removed the last locations; `only` when nothing did. */
type Reason = WantedAttribute['by'] | 'address' | 'country' | 'score' | 'weight' | 'only';

export interface Choice<Candidate extends Location> {
  location: Candidate;
  by: Reason;
  /** True when the same request may get another location next time. */
  isRandom: boolean;
}

interface Narrowed<Candidate> {
  left: readonly Candidate[];
  by: Reason;
}

type Selector = <Candidate extends Location>(
  candidates: Narrowed<Candidate>,
  facts: RequestFacts,
) => Narrowed<Candidate>;

/** Those that `choose_by` may name, beside `weighted`. */
const SELECTORS = new Map<string, Selector>([
  ['locatt', selectByAttributes],
  ['address', selectByAddress],
  ['country', selectByCountry],
  ['score', selectByScore],
]);

/** HDLProxy's order for a list without `choose_by`. */
const DEFAULT_CHOOSE_BY = 'locatt,address,country,score,weighted';

/** The selectors before the draw. Repeated ones change nothing; unknown ones are skipped (recordings "choose_by …"). */
export function readChooseBy(text: string | undefined): string[] {
  const names = (text ?? DEFAULT_CHOOSE_BY).split(',').map((name) => name.trim().toLowerCase());
  const draw = names.indexOf('weighted');
  const before = draw === -1 ? names : names.slice(0, draw);
  return [...new Set(before)].filter((name) => SELECTORS.has(name));
}

/**
 * Applies the selectors in order, then draws by weight. A single location is taken at once, whatever its country,
 * score or weight (recordings "more: one location for another country", "loc xml: one location of weight 0").
 */
export function selectLocation<Candidate extends Location>(
  locations: readonly Candidate[],
  chooseBy: readonly string[],
  facts: RequestFacts,
): Choice<Candidate> | undefined {
  let narrowed: Narrowed<Candidate> = { left: locations, by: 'only' };
  for (const name of chooseBy) {
    if (narrowed.left.length <= 1) break;
    narrowed = SELECTORS.get(name)?.(narrowed, facts) ?? narrowed;
  }
  const { left, by } = narrowed;
  const [first] = left;
  if (first === undefined) return undefined;
  return left.length === 1 ? { location: first, by, isRandom: false } : draw(left, facts.random);
}

/** Each attribute narrows what is left; one that no location has is skipped. */
function selectByAttributes<Candidate extends Location>(
  candidates: Narrowed<Candidate>,
  { attributes }: RequestFacts,
): Narrowed<Candidate> {
  return attributes.reduce(
    (kept, { name, value, by }) =>
      keepMatching(kept, by, (location) => {
        const found = location.attributes.get(name);
        return found !== undefined && (value === undefined || found === value);
      }),
    candidates,
  );
}

function selectByAddress<Candidate extends Location>(
  candidates: Narrowed<Candidate>,
  { address }: RequestFacts,
): Narrowed<Candidate> {
  return keepMatching(candidates, 'address', (location) => {
    const ranges = location.attributes.get('addresses');
    return ranges !== undefined && isInRanges(address, ranges);
  });
}

/** A country that no location has filters nothing: locations of other countries stay. */
function selectByCountry<Candidate extends Location>(
  candidates: Narrowed<Candidate>,
  { country }: RequestFacts,
): Narrowed<Candidate> {
  const wanted = country?.toLowerCase();
  if (wanted === undefined) return candidates;
  return keepMatching(
    candidates,
    'country',
    ({ attributes }) => attributes.get('country')?.trim().toLowerCase() === wanted,
  );
}

/** The highest score. Locations below 0 never win, so nothing may be left (recording "score: all negative, no URL value"). */
function selectByScore<Candidate extends Location>(candidates: Narrowed<Candidate>): Narrowed<Candidate> {
  const best = candidates.left.reduce((highest, location) => Math.max(highest, scoreOf(location)), 0);
  const left = candidates.left.filter((location) => scoreOf(location) === best);
  return left.length === candidates.left.length ? candidates : { left, by: 'score' };
}

function scoreOf({ attributes }: Location): number {
  const score = readDouble(attributes.get('score')) ?? 0;
  return Number.isNaN(score) ? 0 : score;
}

/** Unless none or all match. */
function keepMatching<Candidate>(
  candidates: Narrowed<Candidate>,
  by: Reason,
  matches: (candidate: Candidate) => boolean,
): Narrowed<Candidate> {
  const left = candidates.left.filter(matches);
  return left.length === 0 || left.length === candidates.left.length ? candidates : { left, by };
}

/**
 * By weight. When all weights are 0 HDLProxy rounds, so that the first of n locations gets half and the last
 * one and a half of 1/n; it is the same for NaN.
 */
function draw<Candidate extends Location>(
  locations: readonly Candidate[],
  random: number,
): Choice<Candidate> | undefined {
  const sum = locations.reduce((total, { weight }) => total + weight, 0);
  if (!(sum > 0)) {
    const location = locations[Math.min(locations.length - 1, Math.round(random * locations.length))];
    return location && { location, by: 'weight', isRandom: true };
  }
  const infinite = locations.filter(({ weight }) => weight === Infinity);
  const weighted = infinite.length > 0 ? infinite : locations.filter(({ weight }) => weight > 0);
  const location = drawByWeight(weighted, random);
  return location && { location, by: 'weight', isRandom: weighted.length > 1 };
}

function drawByWeight<Candidate extends Location>(
  locations: readonly Candidate[],
  random: number,
): Candidate | undefined {
  const weightOf = ({ weight }: Location): number => (weight === Infinity ? 1 : weight);
  let rest = random * locations.reduce((sum, location) => sum + weightOf(location), 0);
  return locations.find((location) => (rest -= weightOf(location)) < 0) ?? locations.at(-1);
}
