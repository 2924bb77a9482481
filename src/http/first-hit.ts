// The first time a question about a record in memory is asked in these words: made without Express too.
import type { Entry } from '../cache/entry.js';
import { ServiceError } from '../errors.js';
import { parseHandle } from '../handle/handle.js';
import { bodyOfEntry, render } from './body.js';
import { readFormat, readParameters, readQuestion } from './question.js';
import { representPlain } from './representation.js';
import type { Hit } from './resolve.js';
import { rawHandleOf, readTarget } from './target.js';

export interface FirstHitDeps {
  keyOf: (handle: string) => string;
  /** The entry that memory holds under a key, if it may answer now and needs no refreshing. */
  usable: (key: string) => Entry | undefined;
  gzipMinBytes: number;
}

/** Longer targets go the long way, which may refuse them. */
const MAX_TARGET_BYTES = 1000;

/** What the long way would make of a hit, uncompressed; undefined when it might do anything else. */
export function createFirstHit(deps: FirstHitDeps): (target: string) => Hit | undefined {
  const { keyOf, usable, gzipMinBytes } = deps;
  return function firstHit(target) {
    if (target.length > MAX_TARGET_BYTES) return undefined;
    const { path, query } = readTarget(target);
    const parsed = parseHandle(rawHandleOf(path) ?? '');
    if (!parsed.ok) return undefined;
    const parameters = readParameters(query);
    const question = questionOf(parameters);
    if (question === undefined || question.authoritative || !question.publicOnly) return undefined;
    const { handle } = parsed;
    const entry = usable(keyOf(handle));
    if (entry === undefined) return undefined;
    const { status, json } = bodyOfEntry(entry, handle, question);
    const content = { ...render(json, readFormat(parameters)), hasEtag: status === 200 };
    return { target, handle, entry, status, made: representPlain(content, gzipMinBytes) };
  };
}

function questionOf(parameters: URLSearchParams): ReturnType<typeof readQuestion> | undefined {
  try {
    return readQuestion(parameters);
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}
