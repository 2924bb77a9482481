// The Link headers and header lines of a redirect, whichever location was chosen. Pure.
import type { Steps } from '../../time-slicer.js';
import { type GatheredLists, createSettings } from './gather.js';
import type { HandleLists } from './handle-lists.js';
import { type HeaderLine, headerLinesIn } from './header-lines.js';
import { linkOf } from './link-header.js';
import { type Attributes, type LocationList, isYes } from './location-list.js';
import { templateForms } from './template.js';

/** Servers in front refuse longer headers. */
const MAX_CHARS = 8000;
/** More do not fit into so many characters. Each costs the parsing of an address or two. */
const MAX_LINKS = 200;
/** Longer attributes do not fit either. */
const isShort = (text: string): boolean => text.length <= MAX_CHARS;

/** Header lines, then the links of 10320/links, then those of locations (recordings "links: …", "headers: …"). */
export function* responseHeaders(
  gathered: GatheredLists,
  { handle, allowed }: { handle: string; allowed: readonly string[] },
): Steps<HeaderLine[]> {
  const sources = sourcesOf(gathered);
  const forms = templateForms(handle);
  const lines: HeaderLine[] = [];
  for (const text of sources.flatMap(({ headers }) => headers)) {
    lines.push(...headerLinesIn(text, { forms, allowed }));
    yield;
  }
  const lists = [...sources.flatMap(({ links }) => links), ...sources.flatMap((source) => source.lists)];
  for (const [attributes, { anchors }] of linksIn(lists)) {
    const link = linkOf(attributes, { forms, anchors });
    if (link !== undefined) lines.push(['Link', link]);
    yield;
  }
  return withinBound(lines);
}

/** The first locations with `rel`, and their lists. */
function linksIn(lists: readonly LocationList[]): [Attributes, LocationList][] {
  const found: [Attributes, LocationList][] = [];
  for (const list of lists) {
    if (!list.texts.has('rel')) continue;
    for (const { attributes } of list.locations) {
      if (found.length === MAX_LINKS) return found;
      if (attributes.has('rel') && [...attributes.values()].every(isShort)) found.push([attributes, list]);
    }
  }
  return found;
}

/** Own ones, included ones from the deepest, then those of the prefix, unless the record refuses them. */
function sourcesOf({ own, included, prefix, prefixIncluded }: GatheredLists): HandleLists[] {
  const record = [own, ...included.toReversed().flat()];
  const settings = createSettings([...own.lists, ...included.flat().flatMap(({ lists }) => lists)]);
  const hasLocal = own.links.length > 0 || own.headers.length > 0;
  const refusesPrefix =
    isYes(settings('suppressNsHeaders')) || (hasLocal && isYes(settings('suppressNsHeadersIfLocalHeaders')));
  return refusesPrefix ? record : [...record, ...prefix, ...prefixIncluded.toReversed().flat()];
}

function withinBound(lines: readonly HeaderLine[]): HeaderLine[] {
  let chars = 0;
  return lines.filter(([name, value]) => {
    const length = name.length + value.length;
    if (chars + length > MAX_CHARS) return false;
    chars += length;
    return true;
  });
}
