// Batch elements: a handle as spelled by the caller, with the status and body of its GET.
import type { Host } from '../../app/plugin.js';
import { ServiceError } from '../../errors.js';
import { type HandleRef, handleToPath } from '../../handle/handle.js';
import { indentJson, writeJson } from '../../handle/json.js';
import { selectsAll } from '../../handle/value.js';
import type { Body } from '../../http/reply.js';
import {
  type RefusalOfHandle,
  asServiceError,
  createReportUnexpected,
  renderError,
  resultOfError,
} from '../../http/error-reply.js';
import { type RecordQuery, readHandle } from '../../http/target.js';
import type { RunSteps } from '../../http/request-work.js';
import { bodyOfResolution, charsOf } from '../../http/record-reply.js';
import { type Resolution, type StaleReason, existsBy, resultOf } from '../../resolver/loader.js';
import { type Steps, runToEnd } from '../../time-slicer.js';
import type { Caller } from '../../upstream/caller.js';
import type { RenderedElement, StartElement } from './stream.js';
import { ERRORS, METRICS } from './plugin.js';

/** The parts of a batch request that apply to each element. */
interface ElementRequest {
  query: RecordQuery;
  pretty: boolean;
  runSteps: RunSteps;
  caller: Caller | undefined;
  /** Undefined if no traffic rule matches handles. */
  refusalOf: ((handle: HandleRef) => ReturnType<RefusalOfHandle>) | undefined;
}

/**
 * Maximum total length of the records read for a batch with a selection (characters), because the response
 * length does not reflect this work. A thousand typical records take 0.7 MB in total.
 */
const MAX_SELECTED_CHARS = 64 * 1024 * 1024;

/** Maximum echoed length of an invalid handle (characters). */
const MAX_ECHOED_CHARS = 200;

const tooMuchWork = (): ServiceError =>
  new ServiceError(ERRORS.BATCH_TOO_LARGE, {
    detail: 'the preceding records exceed 64 MiB; request the rest in another batch',
  });

/** Creates the function that starts an element. An invalid or failed handle gets an element with its error. */
export function createStartElement(
  host: Host,
  { query, pretty, runSteps, caller, refusalOf }: ElementRequest,
): StartElement {
  const { resolver, metrics, hooks } = host;
  const count = metrics.counterOf(METRICS.handles);
  const write = (name: string, body: Body, stale?: StaleReason): Steps<string> =>
    elementText(name, { ...body, stale }, pretty);
  let selectedChars = 0;

  function* answer(name: string, handle: HandleRef, resolution: Resolution): Steps<RenderedElement> {
    const readChars = charsOf(resolution);
    if (!selectsAll(query)) selectedChars += readChars;
    if (selectedChars > MAX_SELECTED_CHARS) return yield* fail(name, tooMuchWork(), handle);
    count({ result: resultOf(resolution, query) });
    const exists = existsBy(resolution);
    if (exists !== undefined) for (const each of hooks.answered) each({ handle, interface: 'batch', exists });
    const stale = resolution.kind === 'entry' ? resolution.stale : undefined;
    if (stale !== undefined) metrics.countStale(stale);
    const body = yield* bodyOfResolution(resolution, { handle, query });
    return { text: yield* write(name, body, stale), readChars };
  }

  function* fail(name: string, failure: ServiceError, handle?: HandleRef): Steps<RenderedElement> {
    const reply = renderError(failure, { handle: handle?.text });
    count({ result: resultOfError(reply.status) });
    return { text: yield* write(name, reply), readChars: 0 };
  }

  async function load(name: string, handle: HandleRef): Promise<RenderedElement> {
    try {
      const refusal = await refusalOf?.(handle);
      if (refusal !== undefined) return runToEnd(fail(name, refusal, handle));
      const resolution = await resolver.resolve(handle, { authoritative: false, caller });
      return await runSteps(answer(name, handle, resolution), charsOf(resolution));
    } catch (error) {
      return runToEnd(fail(name, asServiceError(error, createReportUnexpected(host)), handle));
    }
  }

  return function* startElement(name) {
    const text = parseName(name);
    if (text instanceof ServiceError) return yield* fail(name.slice(0, MAX_ECHOED_CHARS), text);
    const handle = resolver.refOf(text);
    // Traffic rules need the asynchronous path, because their limit may be in Redis.
    const found = refusalOf === undefined ? resolver.fromMemory(handle) : undefined;
    if (found !== undefined) return yield* answer(name, handle, found);
    return { handle, load: () => load(name, handle) };
  };
}

/** Validates a name as if it were the handle in a GET path. */
function parseName(name: string): string | ServiceError {
  try {
    return readHandle(handleToPath(name));
  } catch (failure) {
    if (failure instanceof ServiceError) return failure;
    throw failure;
  }
}

/** Formats an element on a separate line, so that programs can read an array of any length line by line. */
function* elementText(
  name: string,
  { status, json, stale }: Body & { stale: StaleReason | undefined },
  pretty: boolean,
): Steps<string> {
  // The reason of a stale element, as in Cache-Status, which a batch cannot have for each element.
  const mark = stale === undefined ? '' : `,"stale":"${stale}"`;
  const element = `{"handle":${writeJson(name)},"status":${status}${mark},"body":${json}}`;
  return pretty ? `\n  ${yield* indentJson(element, 1)}` : `\n${element}`;
}
