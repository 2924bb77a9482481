// Collects the candidate locations of a redirect and their settings, and computes `Vary`. Pure.
import type { HandleValue } from '../../handle/value.js';
import { NO_VARIATION, type Variation } from '../../redirect/extension.js';
import { isOfType, isUrlSubtype, textOf } from '../../redirect/values.js';
import { type GatheredLists, type Settings, createSettings } from './gather.js';
import {
  type HandleLists,
  type Location,
  type LocationList,
  isYes,
  readDouble,
  writeDouble,
} from './location-list.js';
import { readChooseBy } from './select.js';

export interface Candidate extends Location {
  /** The URL value behind a legacy location. */
  value?: HandleValue;
}

export interface Candidates {
  locations: readonly Candidate[];
  /** The selectors to apply before the weighted draw. */
  chooseBy: readonly string[];
  /** The lists' `http_sc` setting. */
  status: string | undefined;
  /** Returns false if no location has the attribute, or none has it with this value. */
  mayHave: (name: string, text?: string) => boolean;
}

const listsOf = (handles: readonly HandleLists[]): LocationList[] => handles.flatMap(({ lists }) => lists);

/** Orders locations: own, included, URL values, prefix (recording "prefix: own 10320/loc, showurls"). */
export function candidatesOf(gathered: GatheredLists, values: readonly HandleValue[]): Candidates {
  const { own, included, prefix, prefixIncluded } = gathered;
  const before = [...own.lists, ...listsOf(included.flat())];
  const after = [...listsOf(prefix), ...listsOf(prefixIncluded.flat())];
  const settings = createSettings([...before, ...after]);
  // `http_sc` ignores the settings of included lists (recording "include: attribute").
  const direct = createSettings([...own.lists, ...listsOf(prefix)]);
  const legacy = isYes(settings('no_legacy'))
    ? []
    : legacyLocations(values, { settings, hasList: own.lists.length > 0 });
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

const locationsOf = (lists: readonly LocationList[]): Candidate[] =>
  new Array<Candidate>().concat(...lists.map(({ locations }) => locations));

/** Returns `choose_by`, or the older `chooseby`, from the first list that sets either. */
function chooseByOf(lists: readonly LocationList[]): string | undefined {
  const list = lists.find(({ settings }) => settings.has('choose_by') || settings.has('chooseby'));
  return list?.settings.get('choose_by') ?? list?.settings.get('chooseby');
}

/**
 * Converts URL values to locations. The first has weight `urlWeight`, by default 0 if the record has a list
 * and 1 otherwise. Subtypes count as URL values if the record has none, and otherwise have `urlSubtypeWeight`
 * (recordings "legacy: …showurls").
 */
function legacyLocations(
  values: readonly HandleValue[],
  { settings, hasList }: { settings: Settings; hasList: boolean },
): Candidate[] {
  const urls = values.filter((value) => isOfType(value, 'URL'));
  const subtypes = values.filter(isUrlSubtype);
  const weight = readSetting(settings('urlWeight')) ?? (hasList ? 0 : 1);
  const subtypeWeight = urls.length === 0 ? weight : (readSetting(settings('urlSubtypeWeight')) ?? 0);
  return [...legacyOf(urls, weight), ...legacyOf(subtypes, subtypeWeight)];
}

/** Parses a weight; an invalid one counts as 0 (recording "legacy: showurls with urlWeight=x"). */
const readSetting = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : (readDouble(text) ?? 0);

const LEGACY_ATTRIBUTES: readonly string[] = ['mode', 'weight', 'href'];

/**
 * Gives the weight to the first value only (recording "legacy: two URL values alone, showurls"). `showurls`
 * prints a negative weight, but the draw treats it as 0.
 */
const legacyOf = (values: readonly HandleValue[], firstWeight: number): Candidate[] =>
  values.map((value, at) => {
    const weight = at === 0 ? firstWeight : 0;
    const attributes = new Map([
      ['mode', 'legacy'],
      ['weight', writeDouble(weight)],
      ['href', textOf(value) ?? ''],
    ]);
    return { attributes, weight: Math.max(0, weight), score: 0, value };
  });

/**
 * Computes the variation from the lists alone. HDLProxy varies only by Accept, and only if a location has a
 * matching `http_role`, so a shared cache may send Turtle to browsers.
 */
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
