// Reads the lists of other handles for one request, and notes the records that took part.
import type { FromEntry, Resolution } from '../../resolver/resolution.js';
import type { ResolveOptions } from '../../resolver/resolver.js';
import { valuesOf } from '../../resolver/parsed-records.js';
import type { ListReader } from './gather.js';
import { type HandleLists, listsIn } from './handle-lists.js';
import type { ParseLocationList } from './location-list.js';
import { NO_NAMESPACE } from './namespace.js';
import type { PrefixRecords } from './prefix-records.js';

export interface ListReaderDeps {
  resolve: (handle: string, options: ResolveOptions) => Promise<Resolution>;
  keyOf: (handle: string) => string;
  parseList: ParseLocationList;
  /** Undefined when lists of prefixes are turned off. */
  prefixRecords: PrefixRecords | undefined;
}

export interface NotingListReader extends ListReader {
  /** The records whose values took part. */
  used: readonly FromEntry[];
}

const NOTHING: HandleLists = { lists: [], links: [], headers: [] };

/** A handle that does not exist, is refused or cannot be read is left out (recordings "include: absent handle", …). */
export function createListReader(
  { resolve, keyOf, parseList, prefixRecords }: ListReaderDeps,
  { authoritative, caller }: ResolveOptions,
): NotingListReader {
  const used: FromEntry[] = [];
  const reads = new Map<string, Promise<HandleLists>>();

  async function read(handle: string): Promise<HandleLists> {
    const resolution = await resolve(handle, { authoritative, caller }).catch(() => undefined);
    if (resolution?.kind !== 'entry') return NOTHING;
    used.push(resolution);
    return listsIn(valuesOf(resolution.entry), parseList);
  }

  return {
    used,
    readLists(handle) {
      const key = keyOf(handle);
      const reading = reads.get(key) ?? read(handle);
      reads.set(key, reading);
      return reading;
    },
    async readNamespace(handle) {
      if (prefixRecords === undefined) return NO_NAMESPACE;
      const { namespace, resolution } = await prefixRecords.read(handle, caller);
      if (resolution !== undefined && namespace.listHandles.length > 0) used.push(resolution);
      return namespace;
    },
  };
}
