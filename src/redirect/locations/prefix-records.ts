// Reads prefix records, and knows which redirects depend on nothing in them.
import { LRUCache } from 'lru-cache';
import type { Entry } from '../../cache/entry.js';
import type { Beside } from '../../cache/prepared-cache.js';
import { valuesOf } from '../../resolver/parsed-records.js';
import type { ResolveOptions } from '../../resolver/resolver.js';
import { GLOBAL_NAMESPACE, NO_NAMESPACE, type Namespace, namespaceIn, prefixHandleOf } from './namespace.js';
import type { OtherRecord, OtherRecords } from './other-records.js';

export interface PrefixRecord extends OtherRecord {
  namespace: Namespace;
}

export interface PrefixRecords {
  /** Of a prefix handle such as 0.NA/21.T11998. `caller`: one that is not judged by its misses. */
  read: (prefixHandle: string, caller: ResolveOptions['caller']) => Promise<PrefixRecord>;
  /** For prepared responses. Undefined unless the records of the prefix and of 0.NA/0.NA add nothing to redirects. */
  plainPrefixOf: (handle: string, now: number) => Beside | undefined;
}

/** One object is shared by the prepared redirects of a prefix. */
const MAX_PREFIXES = 10_000;

export function createPrefixRecords(
  records: Pick<OtherRecords, 'known' | 'knownOrDue' | 'ask' | 'watch'>,
): PrefixRecords {
  const plainPrefixes = new LRUCache<string, Beside>({ max: MAX_PREFIXES });

  function watchPlain(prefixHandle: string): Beside | undefined {
    const known = records.known(prefixHandle);
    return known !== undefined && isPlain(known) ? records.watch(prefixHandle, known) : undefined;
  }

  return {
    async read(prefixHandle, caller) {
      const options = { authoritative: false, caller };
      const found = records.knownOrDue(prefixHandle, options) ?? (await records.ask(prefixHandle, options));
      return { ...found, namespace: namespaceOf(found.record?.entry) };
    },
    plainPrefixOf(handle, now) {
      const prefixHandle = prefixHandleOf(handle);
      const shared = plainPrefixes.get(prefixHandle);
      if (shared?.isCurrent(now) === true) return shared;
      const [own, global] = [watchPlain(prefixHandle), watchPlain(GLOBAL_NAMESPACE)];
      if (own === undefined || global === undefined) return undefined;
      const made = { isCurrent: (at: number) => own.isCurrent(at) && global.isCurrent(at) };
      plainPrefixes.set(prefixHandle, made);
      return made;
    },
  };
}

/** A prefix whose record cannot be read may be closed, or have locations. */
function isPlain({ record, hasFailed }: OtherRecord): boolean {
  const { isInactive, listHandles } = namespaceOf(record?.entry);
  return !hasFailed && !isInactive && listHandles.length === 0;
}

/** Most prefix records have no HS_NAMESPACE, and keys and sites that need not be parsed. */
export const namespaceOf = (entry: Entry | undefined): Namespace =>
  entry !== undefined && /HS_NAMESPACE/i.test(entry.values) ? namespaceIn(valuesOf(entry)) : NO_NAMESPACE;
