// One element of a batch: a handle as the caller wrote it, with status and body of its GET.
import { ServiceError } from '../../errors.js';
import { handleToPath } from '../../handle/handle.js';
import { prettyJson, writeJson } from '../../handle/json.js';
import type { Body } from '../../http/body.js';
import type { Result } from '../../http/context.js';
import { type ReportUnexpected, asServiceError, renderError, resultOfError } from '../../http/error-reply.js';
import type { RecordQuery } from '../../http/query.js';
import { readHandle } from '../../http/target.js';
import type { FromEntry, Resolution, StaleReason } from '../../resolver/resolution.js';
import type { ResolveOptions } from '../../resolver/resolver.js';
import { bodyOfResolution, resultOf } from '../record-reply.js';
import type { ElementSource } from './stream.js';

export interface ElementDeps {
  /** Undefined when the handle has to be loaded. */
  fromMemory: (handle: string) => FromEntry | undefined;
  resolve: (handle: string, options: ResolveOptions) => Promise<Resolution>;
  onStale: (reason: StaleReason) => void;
  onElement: (result: Result) => void;
  onUnexpected: ReportUnexpected;
}

interface ElementForm {
  query: RecordQuery;
  pretty: boolean;
}

/** The elements of one batch. A handle that is invalid, or that fails, is an element with that error. */
export function createElementSource(deps: ElementDeps, { query, pretty }: ElementForm): ElementSource {
  const write = (name: string, body: Body): string => elementText(name, body, pretty);

  function answer(name: string, handle: string, resolution: Resolution): string {
    deps.onElement(resultOf(resolution, query));
    if (resolution.kind === 'entry' && resolution.stale !== undefined) deps.onStale(resolution.stale);
    return write(name, bodyOfResolution(resolution, { handle, query }));
  }

  function fail(name: string, failure: ServiceError, handle?: string): string {
    const reply = renderError(failure, { handle });
    deps.onElement(resultOfError(reply.status));
    return write(name, reply);
  }

  return {
    fromMemory(name) {
      const handle = parseName(name);
      if (handle instanceof ServiceError) return fail(name, handle);
      const found = deps.fromMemory(handle);
      return found && answer(name, handle, found);
    },
    async load(name) {
      const handle = readHandle(handleToPath(name));
      try {
        return answer(name, handle, await deps.resolve(handle, query));
      } catch (error) {
        return fail(name, asServiceError(error, deps.onUnexpected), handle);
      }
    },
  };
}

/** Checked like the handle in the path of a GET. */
function parseName(name: string): string | ServiceError {
  try {
    return readHandle(handleToPath(name));
  } catch (failure) {
    if (failure instanceof ServiceError) return failure;
    throw failure;
  }
}

/** On a line of its own, so that a program can read an array of any length line by line. */
function elementText(name: string, { status, json }: Body, pretty: boolean): string {
  const element = `{"handle":${writeJson(name)},"status":${status},"body":${json}}`;
  // Indented as in an array, without its brackets.
  return pretty ? prettyJson(`[${element}]`).slice(1, -2) : `\n${element}`;
}
