// Selects a location by locatt, content negotiation, address, country, score and weight. Pure.
import type { HandleValue } from '../../handle/value.js';
import { NO_VARIATION, type Variation } from '../../redirect/extension.js';
import { isUrl, isUrlSubtype, textOf, valuesOfType } from '../../redirect/values.js';
import { type Steps, flatMapGroups } from '../../time-slicer.js';
import { isInRanges, readAddress } from './addresses.js';
import { createSettings, type GatheredLists, type Settings } from './gather.js';
import {
  type HandleLists,
  isYes,
  type Location,
  type LocationList,
  readDouble,
  writeDouble,
} from './location-list.js';

interface RequestFacts {
  /** Attributes from the query, then from content negotiation. */
  attributes: readonly WantedAttribute[];
  country: string | undefined;
  address: string;
  /** Random number in [0, 1). */
  random: number;
}

/** The last selector that removed locations; `only` if no selector did. */
type Reason = WantedAttribute['by'] | 'address' | 'country' | 'score' | 'weight' | 'only';

export interface Candidate extends Location {
  /** The URL value behind a legacy location. */
  value?: HandleValue;
}

export interface Choice {
  location: Candidate;
  by: Reason;
  /** Whether a repeated request may get a different location. */
  isRandom: boolean;
}

interface Narrowed {
  left: readonly Candidate[];
  by: Reason;
}

type Narrow = (candidates: Narrowed) => Narrowed;

/** The selectors that `choose_by` may name, except `weighted`. */
const SELECTORS = new Map<string, (facts: RequestFacts) => Narrow[]>([
  ['locatt', ({ attributes }) => attributes.map(byAttribute)],
  ['address', ({ address }) => [byAddress(readAddress(address))]],
  ['country', ({ country }) => (country === undefined ? [] : [byCountry(country.toLowerCase())])],
  ['score', () => [selectByScore]],
]);

/** HDLProxy's default for `choose_by`. */
const DEFAULT_CHOOSE_BY = 'locatt,address,country,score,weighted';

const MAX_CHOOSE_BY_CHARS = 1000;

/** Returns the selectors before the weighted draw, without duplicates (recordings "choose_by …"). */
export function readChooseBy(text: string | undefined): string[] {
  const names = (text ?? DEFAULT_CHOOSE_BY)
    .slice(0, MAX_CHOOSE_BY_CHARS)
    .split(',')
    .map((name) => name.trim().toLowerCase());
  const draw = names.indexOf('weighted');
  const before = draw === -1 ? names : names.slice(0, draw);
  return [...new Set(before)].filter((name) => SELECTORS.has(name));
}

/**
 * Applies the selectors in order, then draws by weight. A sole location wins regardless of its country, score
 * or weight (recording "more: one location for another country").
 */
export function* selectLocation(
  locations: readonly Candidate[],
  chooseBy: readonly string[],
  facts: RequestFacts,
): Steps<Choice | undefined> {
  let narrowed: Narrowed = { left: locations, by: 'only' };
  for (const narrow of chooseBy.flatMap((name) => SELECTORS.get(name)?.(facts) ?? [])) {
    if (narrowed.left.length > 1) narrowed = narrow(narrowed);
    yield;
  }
  const { left, by } = narrowed;
  const [first] = left;
  if (first === undefined) return undefined;
  return left.length === 1 ? { location: first, by, isRandom: false } : draw(left, facts.random);
}

const byAttribute = ({ name, value, by }: WantedAttribute): Narrow =>
  keepMatching(by, ({ attributes }) => {
    const found = attributes.get(name);
    return found !== undefined && (value === undefined || found === value);
  });

const byAddress = (address: bigint | undefined): Narrow =>
  keepMatching(
    'address',
    ({ addresses }) => address !== undefined && addresses !== undefined && isInRanges(address, addresses),
  );

const byCountry = (wanted: string): Narrow => keepMatching('country', ({ country }) => country === wanted);

/** Keeps the highest score; a negative one never wins (recording "score: all negative, no URL value"). */
function selectByScore(candidates: Narrowed): Narrowed {
  const best = candidates.left.reduce((highest, location) => Math.max(highest, location.score), 0);
  const left = candidates.left.filter(({ score }) => score === best);
  return left.length === candidates.left.length ? candidates : { left, by: 'score' };
}

const keepMatching =
  (by: Reason, matches: (candidate: Candidate) => boolean): Narrow =>
  (candidates) => {
    const left = candidates.left.filter(matches);
    return left.length === 0 || left.length === candidates.left.length ? candidates : { left, by };
  };

/**
 * Draws by weight. If all weights are 0 or one is NaN, the draw is skewed by rounding as in HDLProxy: of n
 * locations, the first has probability 0.5/n and the last 1.5/n.
 */
function draw(locations: readonly Candidate[], random: number): Choice | undefined {
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

function drawByWeight(locations: readonly Candidate[], random: number): Candidate | undefined {
  const weightOf = ({ weight }: Location): number => (weight === Infinity ? 1 : weight);
  let rest = random * locations.reduce((sum, location) => sum + weightOf(location), 0);
  return locations.find((location) => (rest -= weightOf(location)) < 0) ?? locations.at(-1);
}

/** A preferred location attribute and its source. Without a value, any value matches. */
export interface WantedAttribute {
  name: string;
  value: string | undefined;
  by: 'locatt' | 'accept';
}

export interface NegotiationFacts {
  accept: string | undefined;
  acceptLanguage: string | undefined;
  userAgent: string | undefined;
}

interface WeightedEntry {
  name: string;
  quality: number;
}

/** Maximum entries read per header, because each is compared with every location. */
const MAX_ENTRIES = 50;

/** Returns the negotiated attributes in filter order (recordings "Accept: …", "Accept-Language: …"). */
export function negotiatedAttributes(facts: NegotiationFacts, wantsMetadata: boolean): WantedAttribute[] {
  const languages = sortByQuality(readPolicy(facts.acceptLanguage)).map(({ name }) =>
    wants('language', name),
  );
  const types = attributesOfAccept(readPolicy(facts.accept), facts.userAgent);
  if (!wantsMetadata) return [...types, ...languages];
  return [wants('role', 'metadata'), ...types.filter(({ name }) => name !== 'http_role'), ...languages];
}

const wants = (name: string, value: string): WantedAttribute => ({ name, value, by: 'accept' });

const wantsType = (type: string): WantedAttribute[] => [wants('ctype', type), wants('media-type', type)];

function attributesOfAccept(entries: WeightedEntry[], userAgent: string | undefined): WantedAttribute[] {
  if (entries.every(({ name }) => name === '*/*')) {
    return /^(?:mozilla|opera)\//i.test(userAgent ?? '')
      ? [wants('http_role', 'browser'), ...wantsType('text/html')]
      : [wants('http_role', 'no_conneg')];
  }
  const best = (some: WeightedEntry[]): number => Math.max(0, ...some.map(({ quality }) => quality));
  if (best(entries.filter(isBrowserType)) === best(entries)) {
    const acceptsHtml = entries.some(({ name }) => ['text/html', 'text/*', '*/*'].includes(name));
    return [wants('http_role', 'browser'), ...(acceptsHtml ? wantsType('text/html') : [])];
  }
  const sorted = sortByQuality(entries);
  const wildcard = sorted.findIndex(({ name }) => name.includes('*'));
  const types = wildcard === -1 ? sorted : sorted.slice(0, wildcard);
  return [...types.flatMap(({ name }) => wantsType(name)), wants('http_role', 'conneg')];
}

const BROWSER_TYPES: readonly string[] = [
  'text/html',
  'text/xhtml',
  'application/xhtml+xml',
  'application/pdf',
  'application/vnd.wap.xhtml+xml',
  'text/vnd.wap.wml',
];

const isBrowserType = ({ name }: WeightedEntry): boolean =>
  BROWSER_TYPES.includes(name) || /^(?:image|audio|video)\/|\*/.test(name);

/** Splits a header as Java does: an empty one is one empty entry; empty entries at the end are dropped. */
function readPolicy(header: string | undefined): WeightedEntry[] {
  if (header === undefined) return [];
  const entries = header.split(',');
  while (entries.length > 0 && header !== '' && entries.at(-1) === '') entries.pop();
  return entries.slice(0, MAX_ENTRIES).map((entry) => {
    const [name = '', ...parameters] = entry.split(';').map((piece) => piece.trim().toLowerCase());
    const text = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    const quality = text === undefined || text === '' ? 1 : Number(text);
    return { name, quality: Number.isNaN(quality) ? 1 : quality };
  });
}

/** Sorts stably, so entries of equal quality keep their order. */
const sortByQuality = (entries: readonly WeightedEntry[]): WeightedEntry[] =>
  [...entries].sort((one, other) => other.quality - one.quality);

// Collects the candidate locations of a redirect and their settings, and computes `Vary`. Pure.

export interface Candidates {
  locations: readonly Candidate[];
  chooseBy: readonly string[];
  status: string | undefined;
  /** Returns false if no location has the attribute, or none has it with this value. */
  mayHave: (name: string, text?: string) => boolean;
}

const listsOf = (handles: readonly HandleLists[]): LocationList[] => handles.flatMap(({ lists }) => lists);

/** Orders locations: own, included, URL values, prefix (recording "prefix: own 10320/loc, showurls"). */
export function* candidatesOf(gathered: GatheredLists, values: readonly HandleValue[]): Steps<Candidates> {
  const { own, included, prefix, prefixIncluded } = gathered;
  const before = [...own.lists, ...listsOf(included.flat())];
  const after = [...listsOf(prefix), ...listsOf(prefixIncluded.flat())];
  const settings = createSettings([...before, ...after]);
  // `http_sc` ignores the settings of included lists (recording "include: attribute").
  const direct = createSettings([...own.lists, ...listsOf(prefix)]);
  const legacy = isYes(settings('no_legacy'))
    ? []
    : yield* takesPart(gathered)
        ? legacyLocations(values, { settings, hasList: own.lists.length > 0 })
        : plainLocations(values);
  const lists = [...before, ...after];
  return {
    locations: locationsOf(before).concat(legacy, locationsOf(after)),
    chooseBy: readChooseBy(chooseByOf(own.lists) ?? chooseByOf(listsOf(prefix))),
    status: direct('http_sc'),
    mayHave: (name, text) =>
      (legacy.length > 0 && LEGACY_ATTRIBUTES.includes(name)) ||
      lists.some(({ texts }) => (text === undefined ? texts.has(name) : texts.get(name)?.has(text))),
  };
}

/** Whether lists, links or headers affect the redirect; if none does, the first URL value is the target. */
export function takesPart({ own, included, prefix, prefixIncluded }: GatheredLists): boolean {
  return [own, ...included.flat(), ...prefix, ...prefixIncluded.flat()].some(
    ({ lists, links, headers }) => lists.length + links.length + headers.length > 0,
  );
}

const locationsOf = (lists: readonly LocationList[]): Candidate[] =>
  new Array<Candidate>().concat(...lists.map(({ locations }) => locations));

/** Returns `choose_by`, or the older `chooseby`, from the first list that sets either. */
function chooseByOf(lists: readonly LocationList[]): string | undefined {
  const list = lists.find(({ settings }) => settings.has('choose_by') || settings.has('chooseby'));
  return list?.settings.get('choose_by') ?? list?.settings.get('chooseby');
}

/**
 * Converts URL values, or else subtypes, to locations of weight `urlWeight`: by default 0 next to a list, else 1.
 * Subtypes next to URL values have `urlSubtypeWeight` (recordings "legacy: …showurls").
 */
function legacyLocations(
  values: readonly HandleValue[],
  { settings, hasList }: { settings: Settings; hasList: boolean },
): Steps<Candidate[]> {
  const weight = readSetting(settings('urlWeight')) ?? (hasList ? 0 : 1);
  const weightNextToUrls = readSetting(settings('urlSubtypeWeight')) ?? 0;
  const urls = valuesOfType(values, 'URL');
  const subtypeWeight = urls.length === 0 ? weight : weightNextToUrls;
  const all: { value: HandleValue; weight: number }[] = [];
  for (const value of urls) all.push({ value, weight });
  for (const value of values.filter(isUrlSubtype)) all.push({ value, weight: subtypeWeight });
  // In steps, because a record may have tens of thousands of URL values.
  return flatMapGroups(all, (some) => some.map(({ value, weight: each }) => legacyOf(value, each)));
}

/** The first URL value is the target (recording "legacy: two URL values alone, showurls"). */
function plainLocations(values: readonly HandleValue[]): Steps<Candidate[]> {
  const urls = values.filter(isUrl);
  const shown = urls.length > 0 ? urls : values.filter(isUrlSubtype);
  return flatMapGroups(shown, (some) => some.map((value) => legacyOf(value, value === shown[0] ? 1 : 0)));
}

/** Parses a weight; an invalid one counts as 0 (recording `legacy: showurls with urlWeight="x"`). */
const readSetting = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : (readDouble(text) ?? 0);

const LEGACY_ATTRIBUTES: readonly string[] = ['mode', 'weight', 'href'];

/** `showurls` prints a negative weight, but the draw treats it as 0. */
const legacyOf = (value: HandleValue, weight: number): Candidate => ({
  attributes: new Map([
    ['mode', 'legacy'],
    ['weight', writeDouble(weight)],
    ['href', textOf(value) ?? ''],
  ]),
  weight: Math.max(0, weight),
  score: 0,
  value,
});

/** HDLProxy varies only by Accept for an `http_role`, so that a shared cache may send Turtle to browsers. */
export function variationOf(
  { locations, chooseBy, mayHave: has }: Candidates,
  { looksUpCountry }: { looksUpCountry: boolean },
): Variation {
  if (locations.length <= 1) return NO_VARIATION;
  return {
    headers: chooseBy.includes('locatt')
      ? Object.entries(VARIES_BY).flatMap(([header, by]) => (by.some((pair) => has(...pair)) ? [header] : []))
      : [],
    isByAddress:
      (chooseBy.includes('address') && has('addresses')) ||
      (looksUpCountry && chooseBy.includes('country') && has('country')),
  };
}

/** Attributes by the header that selects them; a second element limits the match to this value. */
const VARIES_BY: Readonly<Record<string, readonly [name: string, value?: string][]>> = {
  Accept: [['http_role'], ['ctype'], ['media-type']],
  'Accept-Language': [['language']],
  // Browsers without a media type in Accept are recognised by User-Agent.
  'User-Agent': [
    ['http_role', 'browser'],
    ['http_role', 'no_conneg'],
    ['ctype', 'text/html'],
    ['media-type', 'text/html'],
  ],
};
