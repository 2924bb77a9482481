// The Link headers and header lines of a redirect, whichever location was chosen. Pure.
import type { GatheredLists } from './gather.js';
import { createSettings } from './gather.js';
import type { HandleLists } from './handle-lists.js';
import { type HeaderLine, headerLinesIn } from './header-lines.js';
import { linkOf } from './link-header.js';
import { type LocationList, isYes } from './location-list.js';

/** Servers in front refuse longer headers. */
const MAX_CHARS = 8000;

/** Header lines, then the links of 10320/links, then those of locations (recordings "links: …", "headers: …"). */
export function responseHeaders(
  gathered: GatheredLists,
  { handle, allowed }: { handle: string; allowed: readonly string[] },
): HeaderLine[] {
  const sources = sourcesOf(gathered);
  const lines = sources.flatMap(({ headers }) =>
    headers.flatMap((text) => headerLinesIn(text, { handle, allowed })),
  );
  const links = [...sources.flatMap((source) => source.links), ...sources.flatMap(({ lists }) => lists)];
  return withinBound([...lines, ...links.flatMap((list) => linksOf(list, handle))]);
}

const linksOf = ({ locations }: LocationList, handle: string): HeaderLine[] =>
  locations.flatMap(({ attributes }): HeaderLine[] => {
    const link = linkOf(attributes, { handle, siblings: locations });
    return link === undefined ? [] : [['Link', link]];
  });

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
