// Reads the XML of a 10320/loc value, and writes the list of locations for `action=showurls`.
import { SaxesParser, type SaxesTagPlain } from 'saxes';
import { escapeText } from '../html/html.js';
import type { HandleValue } from '../handle/value.js';
import { MAX_URL_CHARS } from './redirect-url.js';
import { isOfType, isUrlSubtype, textOf } from './values.js';

export interface Location {
  href: string;
  weight: number;
  attributes: ReadonlyMap<string, string>;
}

export interface LocationList {
  /** Names of selectors in the order in which they are applied. */
  chooseBy: readonly string[];
  locations: readonly Location[];
}

/** HDLProxy's order for a list without `choose_by`. */
const DEFAULT_CHOOSE_BY = 'locatt,address,country,score,weighted';

const MAX_CHARS = 1024 * 1024;
const MAX_LOCATIONS = 10_000;

/**
 * Undefined when the XML is not well-formed, holds no location or is too large. A document type is refused:
 * entities make XML bombs. In an `href_template`, `{hdl}` stands for the handle.
 */
export function parseLocations(xml: string, handle: string): LocationList | undefined {
  if (xml.length > MAX_CHARS) return undefined;
  try {
    return parse(xml, handle);
  } catch {
    return undefined;
  }
}

function parse(xml: string, handle: string): LocationList | undefined {
  const locations: Location[] = [];
  let chooseBy = DEFAULT_CHOOSE_BY;
  const parser = new SaxesParser();
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('doctype', () => {
    throw new SyntaxError('document type');
  });
  parser.on('opentag', ({ name, attributes }: SaxesTagPlain) => {
    if (name === 'locations') chooseBy = attributes['choose_by'] ?? attributes['chooseby'] ?? chooseBy;
    if (name !== 'location') return;
    const location = locationOf(new Map(Object.entries(attributes)), handle);
    if (location !== undefined) locations.push(location);
    if (locations.length > MAX_LOCATIONS) throw new RangeError('too many locations');
  });
  parser.write(xml).close();
  if (locations.length === 0) return undefined;
  return { chooseBy: readChooseBy(chooseBy), locations };
}

/** Repeated selectors change nothing, so each is applied once. */
const readChooseBy = (text: string): string[] => [
  ...new Set(text.split(',').map((name) => name.trim().toLowerCase())),
];

function locationOf(attributes: Map<string, string>, handle: string): Location | undefined {
  const href = attributes.get('href') ?? fillTemplate(attributes.get('href_template'), handle);
  if (href === undefined || href.trim() === '') return undefined;
  return { href, weight: readWeight(attributes.get('weight')), attributes };
}

/** A template may repeat a long handle, so the length is checked first. */
function fillTemplate(template: string | undefined, handle: string): string | undefined {
  const [first = '', ...others] = template?.split('{hdl}') ?? [];
  // `?` and `#` of a handle are not those of the URL.
  const name = encodeURI(handle).replace(/[?#]/g, encodeURIComponent);
  const chars = (template?.length ?? 0) + others.length * name.length;
  return chars > MAX_URL_CHARS ? undefined : [first, ...others].join(name);
}

/** 1 when missing or not a number. */
function readWeight(text: string | undefined): number {
  const weight = text === undefined || text.trim() === '' ? 1 : Number(text);
  return Number.isFinite(weight) ? Math.min(Math.max(weight, 0), 1e9) : 1;
}

const MAX_CACHED_CHARS = 4 * MAX_CHARS;

export type ParseLocations = typeof parseLocations;

/** `parseLocations` with a cache: a record with weighted locations is parsed at each request. */
export function createLocationParser(): ParseLocations {
  const cached = new Map<string, LocationList | undefined>();
  let chars = 0;
  return (xml, handle) => {
    const key = `${handle.length} ${handle}${xml}`;
    if (cached.has(key)) return cached.get(key);
    if (chars + key.length > MAX_CACHED_CHARS) {
      cached.clear();
      chars = 0;
    }
    const parsed = parseLocations(xml, handle);
    cached.set(key, parsed);
    chars += key.length;
    return parsed;
  };
}

/** All locations of a record as XML. URL values have `mode="legacy"` (recordings "action=showurls …"). */
export function writeLocations(
  values: readonly HandleValue[],
  { handle, parse }: { handle: string; parse: ParseLocations },
): string {
  const located = values
    .filter((value) => isOfType(value, '10320/LOC'))
    .flatMap((value) => parse(textOf(value) ?? '', handle)?.locations ?? []);
  const weight = located.length === 0 ? '1.0' : '0.0';
  const urls = values.filter((value) => isOfType(value, 'URL') || isUrlSubtype(value));
  const legacy = urls.map((value): [string, string][] => [
    ['mode', 'legacy'],
    ['weight', weight],
    ['href', textOf(value) ?? ''],
  ]);
  const elements = [...located.map(({ attributes }) => [...attributes]), ...legacy].map(writeElement);
  return `<locations>\n${elements.join('')}</locations>\n`;
}

/** Without namespaces: in that of XHTML or SVG an element with `onfocus` runs as a script. */
function writeElement(attributes: readonly (readonly [name: string, text: string])[]): string {
  const written = attributes
    .filter(([name]) => !name.includes(':') && name !== 'xmlns')
    .map(([name, text]) => `${name}="${escapeXml(text)}"`);
  return `<location ${written.join(' ')}/>\n`;
}

/** Keeps line ends; what XML does not allow becomes U+FFFD (XML 1.0 sections 2.2 and 3.3.3). */
const escapeXml = (text: string): string =>
  escapeText(text)
    .replace(/[\t\n\r]/g, (space) => `&#${space.charCodeAt(0)};`)
    .replace(/[^\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd');
