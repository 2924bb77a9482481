// Gathers everything that takes part in the redirect of a handle: its own lists, included ones, those of the prefix.
import type { HandleLists } from './handle-lists.js';
import { type Include, type LocationList, isYes } from './location-list.js';
import {
  GLOBAL_NAMESPACE,
  NO_NAMESPACE,
  type Namespace,
  prefixHandleOf,
  toPrefixHandle,
} from './namespace.js';

export interface GatheredLists {
  own: HandleLists;
  /** Level by level below the record. */
  included: readonly HandleLists[][];
  prefix: readonly HandleLists[];
  /** Level by level below the lists of the prefix. */
  prefixIncluded: readonly HandleLists[][];
}

/** Reads other handles; a handle that cannot be read has nothing. */
export interface ListReader {
  readLists: (handle: string) => Promise<HandleLists>;
  /** Of a prefix handle. */
  readNamespace: (handle: string) => Promise<Namespace>;
}

/** HDLProxy's limit (recordings "include: chain of 25 handles (showurls)", "include: itself (showurls)"). */
const MAX_LEVELS = 21;
/** HDLProxy has no limit: a record that includes itself twice has two million lists there. */
const MAX_INCLUDED = 200;
/** HDLProxy has no limit: two hundred includes of one large list are millions of locations for each request. */
const MAX_ELEMENTS = 20_000;
/** This many characters of header lines count as one element. */
const CHARS_PER_ELEMENT = 50;

export async function gatherLists(
  own: HandleLists,
  { handle, reader }: { handle: string; reader: ListReader },
): Promise<GatheredLists> {
  const included = await followIncludes([own], reader);
  const settings = createSettings([own, ...included.flat()].flatMap(({ lists }) => lists));
  const prefix = await readAll(await prefixListHandles(handle, { settings, reader }), reader);
  const prefixIncluded = await followIncludes(prefix, reader);
  const keep = createBound(own);
  return {
    own,
    included: included.map(keep),
    prefix: keep(prefix),
    prefixIncluded: prefixIncluded.map(keep),
  };
}

/** Leaves out the first list that exceeds the bound, and all later ones. The record's own lists count, but are kept. */
function createBound(own: HandleLists): (level: readonly HandleLists[]) => HandleLists[] {
  let left = MAX_ELEMENTS - countElements(own);
  return (level) => level.filter((handle) => (left -= countElements(handle)) >= 0);
}

const countElements = ({ lists, links, headers }: HandleLists): number =>
  [...lists, ...links].reduce((sum, { locations }) => sum + locations.length, 0) +
  headers.reduce((sum, text) => sum + text.length / CHARS_PER_ELEMENT, 0);

/** The setting in the first list that has it. */
export type Settings = (name: string) => string | undefined;

export const createSettings =
  (lists: readonly LocationList[]): Settings =>
  (name) =>
    lists.find(({ settings }) => settings.has(name))?.settings.get(name);

/** The handles whose lists belong to the prefix, then those of the global namespace. */
async function prefixListHandles(
  handle: string,
  { settings, reader }: { settings: Settings; reader: ListReader },
): Promise<readonly string[]> {
  if (isYes(settings('no_nslocs'))) return [];
  const override = textIn(settings('overridePrefix'));
  const prefixHandle = override === '' ? prefixHandleOf(handle) : toPrefixHandle(override);
  const { listHandles, usesGlobal } = await reader.readNamespace(prefixHandle);
  const global = usesGlobal ? await reader.readNamespace(GLOBAL_NAMESPACE) : NO_NAMESPACE;
  const named = [...listHandles, ...global.listHandles];
  const own = textIn(settings('nshdl'));
  return named.length > 0 || own === '' ? named : [own];
}

const textIn = (setting: string | undefined): string => setting?.trim() ?? '';

async function followIncludes(first: readonly HandleLists[], reader: ListReader): Promise<HandleLists[][]> {
  const levels: HandleLists[][] = [];
  let level = first;
  let left = MAX_INCLUDED;
  while (levels.length < MAX_LEVELS && left > 0) {
    const includes = level.flatMap(({ lists }) => lists.flatMap((list) => list.includes));
    const handles = await Promise.all(includes.slice(0, left).map((include) => handlesOf(include, reader)));
    level = await readAll(handles.flat().slice(0, left), reader);
    if (level.length === 0) break;
    left -= level.length;
    levels.push([...level]);
  }
  return levels;
}

async function handlesOf({ kind, handle }: Include, reader: ListReader): Promise<readonly string[]> {
  return kind === 'handle' ? [handle] : (await reader.readNamespace(toPrefixHandle(handle))).listHandles;
}

const readAll = (handles: readonly string[], { readLists }: ListReader): Promise<HandleLists[]> =>
  Promise.all(handles.map(readLists));
