// Reads a request for many handles, and responds with a streamed JSON array.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createGzip } from 'node:zlib';
import { z } from 'zod';
import type { HandlerParts, Started } from '../../plugin.js';
import type { Host } from '../../host.js';
import { ServiceError } from '../../errors.js';
import type { Body } from '../../handle/outcome.js';
import { type HandleRef, readPlainHandle } from '../../handle/handle.js';
import { charsIn } from '../../handle/json-texts.js';
import { type JsonLimits, indentJson, writeJson } from '../../handle/json.js';
import { selectsAll } from '../../handle/value.js';
import { VARY } from '../../http/cache-headers.js';
import { contextOf, existsBy, resultOf } from '../../http/context.js';
import { exposeHeaders } from '../../http/cors.js';
import {
  asServiceError,
  createReportUnexpected,
  type RefusalOfHandle,
  renderError,
  resultOfError,
} from '../../http/error-reply.js';
import { forbidSniffing } from '../../http/raw-response.js';
import { bodyOfResolution, charsOf } from '../../http/record-reply.js';
import { acceptsGzip, frameOf } from '../../http/reply.js';
import { FIRST_ISSUE, parseJsonBytes } from '../../http/request-body.js';
import { signalOfLeaving } from '../../http/request-work.js';
import type { Listener } from '../../http/route-table.js';
import { readRecordQuery, type RecordQuery } from '../../http/target.js';
import type { Resolution, StaleReason } from '../../resolver/resolution.js';
import { UnsentCount } from '../../server/unsent.js';
import { type RunSteps, SMALL_CHARS, runToEnd, type Steps } from '../../time-slicer.js';
import type { Caller } from '../../upstream/caller.js';
import { ERRORS, METRICS } from './plugin.js';
import {
  createStreamElements,
  type RenderedElement,
  type StartElement,
  type StreamElements,
  type UnloadedElement,
} from './stream.js';

export function start(host: Host): Started {
  const { upstreams, settings } = host;
  // With referrals, the servers of a prefix are in its record.
  const { concurrency: ofReferrals } = settings.current.upstream;
  const streamElements = createStreamElements(
    Math.max(ofReferrals, ...upstreams.servers.map(({ concurrency }) => concurrency)),
    (handle) => {
      const [server] = upstreams.findServers(handle);
      return server === undefined
        ? { name: handle.prefix, concurrency: ofReferrals }
        : { name: server.url, concurrency: server.concurrency };
    },
  );
  const unsent = new UnsentCount(host.unsent, host, 'http');
  return {
    handlers: (parts) => createBatchHandlers(parts, createAnswerBatch(host, parts, streamElements, unsent)),
  };
}

function createBatchHandlers(
  { withBody }: HandlerParts,
  answerBatch: AnswerBatch,
): Record<'batchByQuery' | 'batchByBody', Listener> {
  return {
    async batchByQuery(req, res) {
      assertAnonymous(req);
      const { parameters } = contextOf(res);
      await answerBatch(req, res, readBatch(parameters.getAll('handle'), parameters, MAX_HANDLES.GET));
    },
    async batchByBody(req, res) {
      assertAnonymous(req);
      // Accepts any Content-Type, because `curl -d` declares a form.
      const body = await withBody(req, (bytes) => parseJsonBytes(bytes, BATCH_LIMITS, CODES), CODES);
      await answerBatch(req, res, readBatchBody(body, contextOf(res).parameters));
    },
  };
}

const CODES = {
  invalid: ERRORS.BATCH_BAD_BODY,
  encoding: ERRORS.BATCH_BAD_BODY,
  tooLong: ERRORS.BATCH_TOO_LARGE,
} as const;

/**
 * Rejects credentials. A read with credentials always goes to the Handle server, so a batch could try a
 * password a thousand times, and a login that is wrong for some handles would look like a result.
 */
function assertAnonymous({ headers }: IncomingMessage): void {
  if (headers.authorization === undefined) return;
  throw new ServiceError(ERRORS.BATCH_WITH_LOGIN, { detail: 'send one GET for each handle' });
}

type AnswerBatch = (req: IncomingMessage, res: ServerResponse, batch: BatchRequest) => Promise<void>;

function createAnswerBatch(
  host: Host,
  { settings, charge, refusalOfHandle }: HandlerParts,
  streamElements: StreamElements,
  unsent: UnsentCount,
): AnswerBatch {
  return async function answerBatch(req, res, { handles, query }) {
    // The request itself has already been charged.
    if (handles.length > 1) await charge(req, handles.length - 1);
    const context = contextOf(res);
    context.result = 'batch';
    const { contentType, before, after } = frameOf(context.format);
    const isGzip = isWorthGzip(req, handles.length, settings.http.gzipMinBytes);
    res.setHeader('Cache-Control', 'no-store');
    res.setHeader('Vary', VARY);
    res.setHeader('Content-Type', contentType);
    if (isGzip) res.setHeader('Content-Encoding', 'gzip');
    forbidSniffing(res);
    exposeHeaders(res);
    if (req.method === 'HEAD') {
      res.end();
      return;
    }
    const startElement = createStartElement(host, {
      query,
      pretty: context.format.pretty,
      isGzip,
      runSteps: context.runSteps,
      caller: inBackground(context.caller),
      refusalOf: refusalOfHandle && ((handle) => refusalOfHandle(req, handle)),
    });
    const left = signalOfLeaving(res);
    const holdUnsent = unsent.countStream(res);
    // Held until the end of the batch, in addition to its elements.
    const besideBytes = charsIn(handles) + (isGzip ? GZIP_BYTES : 0);
    const hold = (bytes: number): void => holdUnsent(besideBytes + bytes);
    hold(0);
    const elements = streamElements({ startElement, names: handles, signal: left, hold });
    await sendArray(res, framed(elements, `${before}[`, `\n]${after}`), isGzip).catch((error: unknown) => {
      if (!left.aborted) throw error;
    });
  };
}

/** Memory of a gzip stream: zlib's window and hash tables (zconf.h), and one chunk of output. */
const GZIP_BYTES = (128 + 128 + 16) * 1024;

/** Moves a batch to the background class, behind single reads, unless a traffic rule has set its class. */
const inBackground = (caller: Caller | undefined): Caller | undefined =>
  caller?.class === 'normal' ? { ...caller, class: 'background' } : caller;

async function* framed(
  chunks: AsyncIterable<Buffer>,
  open: string,
  close: string,
): AsyncGenerator<string | Buffer> {
  yield open;
  yield* chunks;
  yield close;
}

/** Flushes each chunk, so that clients can read it immediately. */
const FLUSH_EACH = { flush: constants.Z_SYNC_FLUSH };

function sendArray(res: Writable, text: AsyncIterable<string | Buffer>, isGzip: boolean): Promise<void> {
  return isGzip ? pipeline(text, createGzip(FLUSH_EACH), res) : pipeline(text, res);
}

/** Usual bytes of an element, because the total length is not known in advance. */
const USUAL_ELEMENT_BYTES = 500;

const isWorthGzip = ({ headers }: IncomingMessage, handles: number, minBytes: number): boolean =>
  acceptsGzip(headers['accept-encoding']?.toString()) && handles * USUAL_ELEMENT_BYTES >= minBytes;

/** Maximum number of handles per batch; smaller for GET, whose handles are in the request line. */
const MAX_HANDLES = { GET: 100, POST: 1000 };

/** Maximum types, and indexes, of a body: each is compared with every value of every handle. */
const MAX_SELECTORS = 100;

/** The handles, two lists of selectors, and the body itself. */
const BATCH_LIMITS: JsonLimits = {
  elements: MAX_HANDLES.POST,
  values: MAX_HANDLES.POST + 2 * MAX_SELECTORS + 10,
};

interface BatchRequest {
  /** The handles as spelled by the caller; they may be invalid. */
  handles: readonly string[];
  query: RecordQuery;
}

const oneOrMore = <T extends z.ZodType>(schema: T) =>
  z.union([schema, z.array(schema).max(MAX_SELECTORS)]).optional();

/** Rejects unknown members, because a misspelt `type` would change the result. */
export const batchBody = z.strictObject({
  handles: z.array(z.string()),
  type: oneOrMore(z.string()),
  index: oneOrMore(z.union([z.int(), z.string()])),
});

/** Reads a batch. @throws ServiceError BATCH_BAD_BODY, BATCH_TOO_LARGE, BAD_PARAMETER */
function readBatchBody(body: unknown, ofQuery: URLSearchParams): BatchRequest {
  const parsed = batchBody.safeParse(body, FIRST_ISSUE);
  if (!parsed.success) throw badBody(parsed.error.issues[0]);
  const { handles, type = [], index = [] } = parsed.data;
  const parameters = new URLSearchParams(ofQuery);
  for (const text of [type].flat()) parameters.append('type', text);
  for (const text of [index].flat()) parameters.append('index', String(text));
  return readBatch(handles, parameters, MAX_HANDLES.POST);
}

function badBody(issue: z.core.$ZodIssue | undefined): ServiceError {
  const place = issue?.path.join('.') ?? '';
  const reason = `${place}${place === '' ? '' : ': '}${issue?.message ?? 'invalid'}`;
  return new ServiceError(ERRORS.BATCH_BAD_BODY, {
    detail: `give {"handles": ["…"]}, and "type": ["…"] and "index": [1] to select values (${reason})`,
  });
}

/** @throws ServiceError BATCH_TOO_LARGE, BAD_PARAMETER */
function readBatch(handles: readonly string[], parameters: URLSearchParams, max: number): BatchRequest {
  if (handles.length > max) {
    const detail = `${handles.length}; GET accepts at most ${MAX_HANDLES.GET}, POST /api/resolve at most ${MAX_HANDLES.POST}`;
    throw new ServiceError(ERRORS.BATCH_TOO_LARGE, { detail });
  }
  const query = readRecordQuery(parameters);
  // The cache has neither, so that a batch would cause up to a thousand requests to the Handle server.
  if (query.authoritative || !query.publicOnly) {
    const detail = 'auth=true and publicOnly=false are for single handles; a batch is served from the cache';
    throw new ServiceError('BAD_PARAMETER', { detail });
  }
  return { handles, query };
}

// Batch elements: a handle as spelled by the caller, with the status and body of its GET.

/** The parts of a batch request that apply to each element. */
interface ElementRequest {
  query: RecordQuery;
  pretty: boolean;
  isGzip: boolean;
  runSteps: RunSteps;
  caller: Caller | undefined;
  /** Undefined if no traffic rule matches handles. */
  refusalOf: ((handle: HandleRef) => ReturnType<RefusalOfHandle>) | undefined;
}

/**
 * Maximum total length of the records that are parsed, indented or compressed for a batch (characters), because the
 * response length does not reflect this work. A thousand typical records take 0.7 MB in total.
 */
const MAX_WORKED_CHARS = 64 * 1024 * 1024;

const MAX_ECHOED_CHARS = 200;

const tooMuchWork = (): ServiceError =>
  new ServiceError(ERRORS.BATCH_TOO_LARGE, {
    detail: 'the preceding records exceed 64 MiB; request the rest in another batch',
  });

/** Creates the function that starts an element. An invalid or failed handle gets an element with its error. */
function createStartElement(
  host: Host,
  { query, pretty, isGzip, runSteps, caller, refusalOf }: ElementRequest,
): StartElement {
  const { resolver, refOf, metrics, hooks } = host;
  const count = metrics.counterOf(METRICS.handles);
  const reportUnexpected = createReportUnexpected(host);
  const write = (name: string, body: Body, stale?: StaleReason): Steps<string> =>
    elementText(name, { ...body, stale }, pretty);
  const isCopied = selectsAll(query) && !pretty && !isGzip;
  let workedChars = 0;

  function* answer(name: string, handle: HandleRef, resolution: Resolution): Steps<RenderedElement> {
    const readChars = charsOf(resolution);
    if (!isCopied) workedChars += readChars;
    if (workedChars > MAX_WORKED_CHARS) return fail(name, tooMuchWork(), handle);
    count({ result: resultOf(resolution, query) });
    const exists = existsBy(resolution);
    if (exists !== undefined) for (const each of hooks.answered) each({ handle, interface: 'batch', exists });
    const stale = resolution.kind === 'entry' ? resolution.stale : undefined;
    if (stale !== undefined) metrics.countStale(stale);
    const body = yield* bodyOfResolution(resolution, handle, query);
    return { text: yield* write(name, body, stale), readChars };
  }

  function fail(name: string, failure: ServiceError, handle?: HandleRef): RenderedElement {
    const reply = renderError(failure, { handle: handle?.text });
    const result = resultOfError(reply.status);
    count({ result });
    if (handle !== undefined && result === 'error') for (const each of hooks.failed) each(handle);
    return { text: runToEnd(write(name, reply)), readChars: 0 };
  }

  async function load(name: string, handle: HandleRef): Promise<RenderedElement> {
    try {
      const refusal = await refusalOf?.(handle);
      if (refusal !== undefined) return fail(name, refusal, handle);
      const resolution = await resolver.resolve(handle, { authoritative: false, caller });
      const chars = charsOf(resolution);
      // Short records are sliced too, because those in memory all follow in one turn of the event loop.
      return await runSteps(answer(name, handle, resolution), chars <= SMALL_CHARS ? Infinity : chars);
    } catch (error) {
      return fail(name, asServiceError(error, reportUnexpected), handle);
    }
  }

  function* start(name: string): Steps<RenderedElement | UnloadedElement> {
    let handle: HandleRef;
    try {
      handle = refOf(readPlainHandle(name));
    } catch (error) {
      return fail(name.slice(0, MAX_ECHOED_CHARS), asServiceError(error, reportUnexpected));
    }
    // Traffic rules need the asynchronous path, because their limit may be in Redis.
    const found = refusalOf === undefined ? resolver.fromMemory(handle) : undefined;
    if (found !== undefined) return yield* answer(name, handle, found);
    return { handle, load: () => load(name, handle) };
  }

  // Infinity, because the sizes of the records are not known before they are read.
  return (name) => runSteps(start(name), Infinity);
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
