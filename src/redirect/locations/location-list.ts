// Reads a 10320/loc value: its settings, its locations, and the lists that it includes.
import { scanDocument } from './scan.js';
import { readDouble } from './java-double.js';

export interface Location {
  attributes: ReadonlyMap<string, string>;
  /** 0 or more; NaN and Infinity as HDLProxy reads them. */
  weight: number;
}

/** Another handle whose lists take part, or the lists of a prefix. */
export interface Include {
  kind: 'handle' | 'namespace';
  handle: string;
}

export interface LocationList {
  /** The attributes of the root element. */
  settings: ReadonlyMap<string, string>;
  locations: readonly Location[];
  /** In the order in which HDLProxy follows them: attributes, then elements. */
  includes: readonly Include[];
}

/** Undefined when the text is no list at all. A root of any name is one (recording "loc xml: root of another name"). */
export function parseLocationList(text: string): LocationList | undefined {
  const scanned = scanDocument(text);
  if (scanned === undefined) return undefined;
  const { root, children } = scanned;
  return {
    settings: root.attributes,
    locations: children
      .filter(({ name }) => name === 'location' || name === 'loc_template')
      .map(({ attributes }) => ({ attributes, weight: readWeight(attributes.get('weight')) })),
    includes: [
      includeOf('handle', root.attributes.get('include')),
      includeOf('namespace', root.attributes.get('includeNamespace')),
      ...children.map(({ name, text: handle }) =>
        name === 'include'
          ? includeOf('handle', handle)
          : name === 'includenamespace'
            ? includeOf('namespace', handle)
            : undefined,
      ),
    ].filter((include) => include !== undefined),
  };
}

function includeOf(kind: Include['kind'], text: string | undefined): Include | undefined {
  const handle = text?.trim() ?? '';
  return handle === '' ? undefined : { kind, handle };
}

/** 1 when missing or unreadable. */
const readWeight = (text: string | undefined): number => Math.max(0, readDouble(text) ?? 1);

/** `yes`, `true` and `1` in any case; other texts mean no (recording "legacy: showurls with no_legacy="x""). */
export const isYes = (text: string | undefined): boolean =>
  text !== undefined && ['yes', 'true', '1'].includes(text.toLowerCase());

const MAX_CACHED_CHARS = 4 * 1024 * 1024;

export type ParseLocationList = typeof parseLocationList;

/** `parseLocationList` with a cache: a list with weights is read at each request, and that of a prefix at most of them. */
export function createLocationListParser(): ParseLocationList {
  const cached = new Map<string, LocationList | undefined>();
  let chars = 0;
  return (text) => {
    if (cached.has(text)) return cached.get(text);
    if (chars + text.length > MAX_CACHED_CHARS) {
      cached.clear();
      chars = 0;
    }
    const parsed = parseLocationList(text);
    cached.set(text, parsed);
    chars += text.length;
    return parsed;
  };
}
