// The table of moved handles, which is valid as a whole or not at all.
import { upperAscii } from '../../handle/handle.js';
import type { Steps } from '../../time-slicer.js';
import { isWebAddress } from '../../handle/url.js';

export interface MovedTable {
  /** The new URLs by handle, as written in the file. */
  readonly handles: ReadonlyMap<string, string>;
  /** The templates of new URLs by prefix, in upper case. */
  readonly prefixes: ReadonlyMap<string, string>;
}

/** Whether the handles of a prefix are only read here, so that no write can contradict the table. */
type IsOnlyRead = (handle: string) => boolean;

/** At most 16 MiB and 100,000 lines are parsed, in 0.1 s, or 0.8 s if prefixes have fifty parts: in time slices at a reload. */
const MAX_BYTES = 16 * 2 ** 20;
const MAX_LINES = 100_000;
const MAX_LINE_CHARS = 16_384;
/** Maximum length of a URL (characters), that of a redirect. */
const MAX_URL = 8000;

export const sizeProblem = (bytes: number): string | undefined =>
  bytes > MAX_BYTES ? `it has more than ${MAX_BYTES} bytes` : undefined;

/** Returns the table, or what is wrong with the text and in which line. */
export function* readTable(text: string, isOnlyRead: IsOnlyRead): Steps<MovedTable | string> {
  const isTooLong = sizeProblem(Buffer.byteLength(text));
  if (isTooLong !== undefined) return isTooLong;
  const table = { handles: new Map<string, string>(), prefixes: new Map<string, string>() };
  let from = 0;
  for (let line = 1; from <= text.length; line++) {
    if (line > MAX_LINES + 1) return `it has more than ${MAX_LINES} lines`;
    const lineEnd = text.indexOf('\n', from);
    const end = lineEnd === -1 ? text.length : lineEnd;
    // `trim` also removes a byte order mark.
    const problem = addLine(table, text.slice(from, end).trim(), isOnlyRead);
    if (problem !== undefined) return `line ${line}: ${problem}`;
    from = end + 1;
    yield;
  }
  return table;
}

/** Adds `handle,URL` or `prefix/*,URL`. Returns what is wrong with the line. */
function addLine(
  table: Record<'handles' | 'prefixes', Map<string, string>>,
  line: string,
  isOnlyRead: IsOnlyRead,
): string | undefined {
  if (line === '' || line.startsWith('#')) return undefined;
  if (line.length > MAX_LINE_CHARS) return `it has more than ${MAX_LINE_CHARS} characters`;
  // A handle may contain commas, and quotes would be part of it.
  const comma = line.search(/,\s*https?:\/\//i);
  if (comma < 1) return 'give handle,URL or prefix/*,URL, without quotes';
  const name = line.slice(0, comma).trimEnd();
  const url = line.slice(comma + 1).trimStart();
  const problem = lineProblem(name, url, isOnlyRead);
  if (problem !== undefined) return problem;
  const [entries, key] = name.endsWith('/*')
    ? [table.prefixes, upperAscii(name.slice(0, -'/*'.length))]
    : [table.handles, name];
  if (entries.has(key)) return `${name} is given twice`;
  entries.set(key, url);
  return undefined;
}

function lineProblem(name: string, url: string, isOnlyRead: IsOnlyRead): string | undefined {
  if (!/^[^/"]+\/(?!.*\/\*$)./.test(name))
    return 'give a handle, such as 20.500.1/1, or a prefix, such as 20.500.1/*';
  if (url.length > MAX_URL || !isWebAddress(url))
    return `give an http or https URL of at most ${MAX_URL} characters`;
  // A redirect to such a URL, or a handle with such a name, would be another one.
  if (`${name}${url}`.includes('\uFFFD')) return 'it is not UTF-8, or has U+FFFD: save the file in UTF-8';
  return isOnlyRead(name)
    ? undefined
    : 'no server of the kind dspace or template has this prefix; change records of a Handle server there';
}

export interface TableChanges {
  handles: readonly string[];
  prefixes: readonly string[];
}

/** Returns the handles and prefixes whose URL differs between two tables. */
export function* changesBetween(before: MovedTable, after: MovedTable): Steps<TableChanges> {
  return {
    handles: yield* differing(before.handles, after.handles),
    prefixes: yield* differing(before.prefixes, after.prefixes),
  };
}

function* differing(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): Steps<string[]> {
  const found: string[] = [];
  for (const [key, url] of after) {
    if (before.get(key) !== url) found.push(key);
    yield;
  }
  for (const key of before.keys()) {
    if (!after.has(key)) found.push(key);
    yield;
  }
  return found;
}
