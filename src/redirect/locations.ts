// Reads the XML of a 10320/loc value: places where the object is, and how one of them is chosen.
import { SaxesParser, type SaxesTagPlain } from 'saxes';

export interface Location {
  href: string;
  weight: number;
  attributes: ReadonlyMap<string, string>;
}

export interface Locations {
  /** Names of selectors in the order in which they narrow the choice. */
  chooseBy: readonly string[];
  locations: readonly Location[];
}

/** HDLProxy's order when the value names none. */
const DEFAULT_CHAIN = 'locatt,address,country,score,weighted';

const MAX_CHARS = 1024 * 1024;
const MAX_LOCATIONS = 10_000;

/**
 * Undefined when the text is not well-formed, holds no location or is beyond all measure. A document
 * type is refused as such: nobody needs one here, and entities are what XML bombs are made of. `{hdl}`
 * in an `href_template` stands for the handle.
 */
export function parseLocations(xml: string, handle: string): Locations | undefined {
  if (xml.length > MAX_CHARS) return undefined;
  try {
    return read(xml, handle);
  } catch {
    return undefined;
  }
}

function read(xml: string, handle: string): Locations | undefined {
  const locations: Location[] = [];
  let chooseBy = DEFAULT_CHAIN;
  const parser = new SaxesParser();
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('doctype', () => {
    throw new SyntaxError('a document type');
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
  return { chooseBy: readChain(chooseBy), locations };
}

/** A selector narrows no further the second time; a hundred thousand of them would keep everybody waiting. */
const readChain = (text: string): string[] => [
  ...new Set(text.split(',').map((name) => name.trim().toLowerCase())),
];

function locationOf(attributes: Map<string, string>, handle: string): Location | undefined {
  const href = attributes.get('href') ?? fillIn(attributes.get('href_template'), handle);
  if (href === undefined || href.trim() === '') return undefined;
  return { href, weight: weightOf(attributes.get('weight')), attributes };
}

/** Nobody could be redirected to more, and a template may name a long handle as often as it likes. */
const MAX_HREF_CHARS = 8000;

function fillIn(template: string | undefined, handle: string): string | undefined {
  const [first = '', ...others] = template?.split('{hdl}') ?? [];
  const name = inUrl(handle);
  const chars = (template?.length ?? 0) + others.length * name.length;
  return chars > MAX_HREF_CHARS ? undefined : [first, ...others].join(name);
}

/** `?` and `#` are parts of a handle, not of the URL around it. */
const inUrl = (handle: string): string => encodeURI(handle).replace(/[?#]/g, encodeURIComponent);

/** 1 where none is given, or none that can be read. */
function weightOf(text: string | undefined): number {
  const weight = text === undefined || text.trim() === '' ? 1 : Number(text);
  return Number.isFinite(weight) ? Math.min(Math.max(weight, 0), 1e9) : 1;
}

/** Weighted records are read again at each request: the last ones are kept, up to so many characters. */
const KEPT_CHARS = 4 * MAX_CHARS;

export type ReadLocations = typeof parseLocations;

/** Makes a `parseLocations` that remembers. */
export function createLocationReader(): ReadLocations {
  const known = new Map<string, Locations | undefined>();
  let chars = 0;
  return (xml, handle) => {
    const key = `${handle.length} ${handle}${xml}`;
    if (known.has(key)) return known.get(key);
    if (chars + key.length > KEPT_CHARS) {
      known.clear();
      chars = 0;
    }
    const parsed = parseLocations(xml, handle);
    known.set(key, parsed);
    chars += key.length;
    return parsed;
  };
}
