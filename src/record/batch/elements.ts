// One element of a batch: a handle as the caller wrote it, with status and body of its GET.
import { ServiceError } from '../../errors.js';
import { handleToPath } from '../../handle/handle.js';
import { prettyJson, writeJson } from '../../handle/json.js';
import { selectsAll } from '../../handle/value.js';
import type { Body } from '../../http/body.js';
import type { Result } from '../../http/context.js';
import { type ReportUnexpected, asServiceError, renderError, resultOfError } from '../../http/error-reply.js';
import type { RecordQuery } from '../../http/query.js';
import type { RefusalOfHandle } from '../../http/guard.js';
import type { RunSteps } from '../../http/request-work.js';
import { readHandle } from '../../http/target.js';
import type { FromEntry, Resolution, StaleReason } from '../../resolver/resolution.js';
import type { ResolveOptions } from '../../resolver/resolver.js';
import { type Steps } from '../../time-slicer.js';
import { bodyOfResolution, charsOf, resultOf } from '../record-reply.js';
import type { ElementSource, RenderedElement } from './stream.js';

export interface ElementDeps {
  /** Undefined when the handle has to be loaded. */
  fromMemory: (handle: string) => FromEntry | undefined;
  resolve: (handle: string, options: ResolveOptions) => Promise<Resolution>;
  onStale: (reason: StaleReason) => void;
  onElement: (result: Result) => void;
  onUnexpected: ReportUnexpected;
  /** Undefined where no traffic rule is about handles. */
  refusalOf: ((handle: string) => ReturnType<RefusalOfHandle>) | undefined;
}

interface ElementForm {
  query: RecordQuery;
  pretty: boolean;
  runSteps: RunSteps;
}

/**
 * Records of one batch from which values are selected: they cost work that does not show in the length of the answer.
 * A thousand usual records have 0.7 MB.
 */
const MAX_SELECTED_CHARS = 64 * 1024 * 1024;

/** Of a name that is no handle. */
const MAX_ECHOED_CHARS = 200;

const tooMuchWork = (): ServiceError =>
  new ServiceError('BATCH_TOO_LARGE', {
    detail: 'the records before have 64 MiB; ask for the rest in another batch',
  });

/** The elements of one batch. A handle that is invalid, or that fails, is an element with that error. */
export function createElementSource(
  deps: ElementDeps,
  { query, pretty, runSteps }: ElementForm,
): ElementSource {
  const write = (name: string, body: Body): string => elementText(name, body, pretty);
  let selectedChars = 0;

  function* answer(name: string, handle: string, resolution: Resolution): Steps<RenderedElement> {
    const readChars = charsOf(resolution);
    if (!selectsAll(query)) selectedChars += readChars;
    if (selectedChars > MAX_SELECTED_CHARS) return fail(name, tooMuchWork(), handle);
    deps.onElement(resultOf(resolution, query));
    if (resolution.kind === 'entry' && resolution.stale !== undefined) deps.onStale(resolution.stale);
    return { text: write(name, yield* bodyOfResolution(resolution, { handle, query })), readChars };
  }

  function fail(name: string, failure: ServiceError, handle?: string): RenderedElement {
    const reply = renderError(failure, { handle });
    deps.onElement(resultOfError(reply.status));
    return { text: write(name, reply), readChars: 0 };
  }

  return {
    *fromMemory(name) {
      const handle = parseName(name);
      if (handle instanceof ServiceError) return fail(name.slice(0, MAX_ECHOED_CHARS), handle);
      // A rule may have to ask Redis for its limit.
      if (deps.refusalOf !== undefined) return undefined;
      const found = deps.fromMemory(handle);
      return found && (yield* answer(name, handle, found));
    },
    async load(name) {
      const handle = readHandle(handleToPath(name));
      try {
        const refusal = await deps.refusalOf?.(handle);
        if (refusal !== undefined) return fail(name, refusal, handle);
        const resolution = await deps.resolve(handle, query);
        return await runSteps(answer(name, handle, resolution), charsOf(resolution));
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
