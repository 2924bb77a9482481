// The first time a question about a record in memory is asked in these words: made without Express too.
import type { Entry } from '../cache/entry.js';
import { bodyOfEntry, render } from '../http/body.js';
import { readPlainQuestion } from './plain-question.js';
import { representPlain } from '../http/representation.js';
import type { Hit } from './resolve.js';

export interface FirstHitDeps {
  keyOf: (handle: string) => string;
  /** The entry that memory holds under a key, if it may answer now and needs no refreshing. */
  usable: (key: string) => Entry | undefined;
  gzipMinBytes: number;
}

/** What the long way would make of a hit, uncompressed; undefined when it might do anything else. */
export function createFirstHit(deps: FirstHitDeps): (target: string) => Hit | undefined {
  const { keyOf, usable, gzipMinBytes } = deps;
  return function firstHit(target) {
    const plain = readPlainQuestion(target);
    const entry = plain && usable(keyOf(plain.handle));
    if (plain === undefined || entry === undefined) return undefined;
    const { handle, question, format } = plain;
    const { status, json } = bodyOfEntry(entry, handle, question);
    const content = { ...render(json, format), hasEtag: status === 200 };
    return { target, handle, entry, status, made: representPlain(content, gzipMinBytes) };
  };
}
