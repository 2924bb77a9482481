// Gathers everything that takes part in the redirect of a handle: its own lists, included ones, those of the prefix.
import { type HandleLists, MAX_ELEMENTS, countElements } from './handle-lists.js';
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
  /** Of the prefix of the record, or of the global namespace. */
  readNamespace: (handle: string) => Promise<Namespace>;
  /** Of a prefix that a list includes. */
  readIncludedNamespace: (handle: string) => Promise<Namespace>;
}

/** HDLProxy's limit (recordings "include: chain of 25 handles (showurls)", "include: itself (showurls)"). */
const MAX_LEVELS = 21;
/** HDLProxy has no limit: a record that includes itself twice has two million lists there. */
const MAX_INCLUDED = 200;
/** Handles that are read at the same time. */
const READ_AT_ONCE = 10;

export async function gatherLists(
  own: HandleLists,
  { handle, reader }: { handle: string; reader: ListReader },
): Promise<GatheredLists> {
  const keep = createBound(own);
  const included = await followIncludes([own], { reader, keep });
  const settings = createSettings([own, ...included.flat()].flatMap(({ lists }) => lists));
  const prefixHandles = await prefixListHandles(handle, { settings, reader });
  const prefix = keep(await readAll(prefixHandles.slice(0, MAX_INCLUDED), reader));
  const prefixIncluded = await followIncludes(prefix, { reader, keep });
  return { own, included, prefix, prefixIncluded };
}

type KeepWithinBound = (level: readonly HandleLists[]) => HandleLists[];

/** Leaves out the first lists that exceed the bound, and all later ones. The record's own lists count, but are kept. */
function createBound(own: HandleLists): KeepWithinBound {
  let left = MAX_ELEMENTS - countElements(own);
  return (level) => level.filter((handle) => (left -= countElements(handle)) >= 0);
}

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

async function followIncludes(
  first: readonly HandleLists[],
  { reader, keep }: { reader: ListReader; keep: KeepWithinBound },
): Promise<HandleLists[][]> {
  const levels: HandleLists[][] = [];
  let level = first;
  let left = MAX_INCLUDED;
  while (levels.length < MAX_LEVELS && left > 0) {
    const handles = await includedHandles(includesOf(level, left), reader);
    const read = await readAll(handles.slice(0, left), reader);
    left -= read.length;
    const kept = keep(read);
    if (kept.length === 0) break;
    levels.push(kept);
    level = kept;
  }
  return levels;
}

/** The first of them, because each of two hundred lists may have thousands. */
function includesOf(level: readonly HandleLists[], most: number): Include[] {
  const found: Include[] = [];
  for (const { includes } of level.flatMap(({ lists }) => lists)) {
    found.push(...includes.slice(0, most - found.length));
  }
  return found;
}

async function includedHandles(includes: readonly Include[], reader: ListReader): Promise<string[]> {
  const found = await mapInGroups(includes, async ({ kind, handle }) =>
    kind === 'handle' ? [handle] : (await reader.readIncludedNamespace(toPrefixHandle(handle))).listHandles,
  );
  return found.flat();
}

const readAll = (handles: readonly string[], { readLists }: ListReader): Promise<HandleLists[]> =>
  mapInGroups(handles, readLists);

/** One group after the other: each of two hundred handles may have a record of a megabyte. */
async function mapInGroups<Given, Made>(
  all: readonly Given[],
  make: (one: Given) => Promise<Made>,
): Promise<Made[]> {
  const made: Made[] = [];
  for (let at = 0; at < all.length; at += READ_AT_ONCE) {
    made.push(...(await Promise.all(all.slice(at, at + READ_AT_ONCE).map(make))));
  }
  return made;
}
