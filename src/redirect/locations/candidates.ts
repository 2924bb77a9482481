// The locations from which one is selected, the settings of their lists, and the `Vary` of the selection. Pure.
import type { HandleValue } from '../../handle/value.js';
import { isOfType, isUrlSubtype, textOf } from '../values.js';
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
  /** The URL value from which the location was made. */
  value?: HandleValue;
}

export interface Candidates {
  locations: readonly Candidate[];
  /** The selectors before the draw. */
  chooseBy: readonly string[];
  /** `http_sc` of the lists. */
  status: string | undefined;
  /** False when no location has the attribute, or none has it with this text. */
  mayHave: (name: string, text?: string) => boolean;
}

const listsOf = (handles: readonly HandleLists[]): LocationList[] => handles.flatMap(({ lists }) => lists);

/** Own locations, included ones, URL values, then those of the prefix (recording "prefix: own 10320/loc, showurls"). */
export function candidatesOf(gathered: GatheredLists, values: readonly HandleValue[]): Candidates {
  const { own, included, prefix, prefixIncluded } = gathered;
  const before = [...own.lists, ...listsOf(included.flat())];
  const after = [...listsOf(prefix), ...listsOf(prefixIncluded.flat())];
  const settings = createSettings([...before, ...after]);
  // Settings of included lists do not count here (recording "include: attribute").
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

/** `choose_by`, else the older `chooseby`, of the first list that has one. */
function chooseByOf(lists: readonly LocationList[]): string | undefined {
  const list = lists.find(({ settings }) => settings.has('choose_by') || settings.has('chooseby'));
  return list?.settings.get('choose_by') ?? list?.settings.get('chooseby');
}

/**
 * The URL values as locations. The first has weight 0 if the record has a list and 1 if not, unless `urlWeight` sets it.
 * Subtypes count as URL values if there is no URL value, else they have `urlSubtypeWeight` (recordings "legacy: …showurls").
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

/** An unreadable weight is 0 (recordings "legacy: showurls with urlWeight="x""). */
const readSetting = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : (readDouble(text) ?? 0);

const LEGACY_ATTRIBUTES: readonly string[] = ['mode', 'weight', 'href'];

/**
 * Only the first has the weight (recording "legacy: two URL values alone, showurls"). A negative weight is shown, but
 * counts as 0.
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

export interface Variation {
  /** Names for `Vary`. */
  headers: readonly string[];
  /** Clients at other addresses may get another location. */
  isByAddress: boolean;
}

export const NO_VARIATION: Variation = { headers: [], isByAddress: false };

/**
 * The same for every request of the list. HDLProxy names only Accept, and only with an `http_role` for it: a shared
 * cache then sends Turtle to browsers.
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

/** Attributes by the header that selects them, with a value where only this value matters. */
const VARIES_BY: Readonly<Record<string, readonly [name: string, value?: string][]>> = {
  Accept: [['http_role'], ['ctype'], ['media-type']],
  'Accept-Language': [['language']],
  // Without a type in Accept, browsers are recognised by User-Agent.
  'User-Agent': [
    ['http_role', 'browser'],
    ['http_role', 'no_conneg'],
    ['ctype', 'text/html'],
    ['media-type', 'text/html'],
  ],
};
