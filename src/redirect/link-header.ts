// Parses Link headers (RFC 8288), and writes the headers of a record with one line for each name.
import type { HeaderLine } from './extension.js';

export interface ParsedLink {
  /** The link as written, from `<` on. */
  text: string;
  href: string;
  /** Values by lower-case name, unquoted; the first of a name counts (RFC 8288 §3.3). */
  parameters: ReadonlyMap<string, string>;
}

// An open quoted string ends with the header, so that no text is scanned twice.
const LINK = /<([^<>]*)>((?:[^",]|"(?:[^"\\]|\\.)*(?:"|(\\?$)))*)/g;
const PARAMETER = /;\s*([\w!#$%&'*+.^`|~-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*)))?/g;

/** Parses a Link header. Drops text between links, and a link with an open string, which would include the next. */
export const parseLinks = (header: string): ParsedLink[] =>
  [...header.matchAll(LINK)].flatMap(([text, href = '', written = '', open]) => {
    if (open !== undefined) return [];
    const parameters = new Map<string, string>();
    for (const [, name = '', quoted, token = ''] of written.matchAll(PARAMETER)) {
      const key = name.toLowerCase();
      if (!parameters.has(key)) parameters.set(key, quoted?.replace(/\\(.)/g, '$1') ?? token);
    }
    return [{ text: text.trim(), href, parameters }];
  });

/** Maximum relations per link; real links have one or two. */
const MAX_RELATIONS = 20;

/** Returns the different relations of a link in lower case. */
export function relationsOf({ parameters }: ParsedLink): string[] {
  const all = (parameters.get('rel') ?? '').toLowerCase().split(/\s+/);
  return [...new Set(all)].filter((relation) => relation !== '').slice(0, MAX_RELATIONS);
}

/** Joins the lines of each name (RFC 9110 §5.3): clients and proxies limit lines, Python's http.client to 100. */
export function combineHeaderLines(lines: readonly HeaderLine[]): HeaderLine[] {
  const values = new Map<string, [name: string, ...values: string[]]>();
  for (const [name, value] of lines) {
    const same = values.get(name.toLowerCase());
    if (same === undefined) values.set(name.toLowerCase(), [name, value]);
    else same.push(value);
  }
  return [...values].flatMap(([key, [name, ...all]]): HeaderLine[] => {
    const value = key === 'link' ? joinLinks(all.flatMap(parseLinks)) : all.join(', ');
    return value === '' ? [] : [[name, value]];
  });
}

/** Maximum length of a Link header. Proxies reject longer ones. */
const MAX_LINK_CHARS = 8000;
/** Maximum links next to a link set, which contains all of them. */
const MAX_LINKS_WITH_SET = 60;
/** Relations that come first; without room or with too many links, the others are left out. */
const FIRST_RELATIONS = ['cite-as', 'linkset'];

function joinLinks(links: readonly ParsedLink[]): string {
  const byRank = FIRST_RELATIONS.map((relation) =>
    links.filter((link) => relationsOf(link).includes(relation)),
  );
  const first = new Set(byRank.flat());
  const [, sets = []] = byRank;
  const hasOthers = sets.length === 0 || links.length <= MAX_LINKS_WITH_SET;
  const others = hasOthers ? links.filter((link) => !first.has(link)) : [];
  let header = '';
  for (const { text } of [...first, ...others]) {
    const longer = header === '' ? text : `${header}, ${text}`;
    if (longer.length <= MAX_LINK_CHARS) header = longer;
  }
  return header;
}
