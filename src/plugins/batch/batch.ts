// Responds to a request for many handles with a streamed JSON array.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createGzip } from 'node:zlib';
import type { Host, Started } from '../../app/plugin.js';
import { ServiceError } from '../../errors.js';
import { frameOf, acceptsGzip } from '../../http/reply.js';
import { VARY } from '../../http/cache-headers.js';
import { type Result, contextOf } from '../../http/context.js';
import { exposeHeaders } from '../../http/cors.js';
import { createReportUnexpected, type RefusalOfHandle } from '../../http/error-reply.js';
import { forbidSniffing } from '../../http/raw-response.js';
import { type WithBody, parseJsonBody } from '../../http/request-body.js';
import type { Listener } from '../../http/route-table.js';
import { type RunStepsOf, signalOfLeaving } from '../../http/request-work.js';
import { type HoldFor, type HoldUnsent, createHoldFor } from '../../server/unsent.js';
import type { Caller } from '../../upstream/caller.js';
import { type ElementDeps, createStartElement } from './elements.js';
import { ERRORS, METRICS } from './plugin.js';
import { BATCH_LIMITS, type BatchRequest, readBatchBody, readBatchQuery } from './request.js';
import { type StreamElements, createStreamElements } from './stream.js';

interface BatchDeps extends ElementDeps {
  streamElements: StreamElements;
  withBody: WithBody;
  maxBodyBytes: number;
  /** Charges the caller for additional requests. Rejects if they exceed a limit. */
  charge: (req: IncomingMessage, more: number) => Promise<void>;
  /** Undefined if no traffic rule matches handles. */
  refusalOfHandle: RefusalOfHandle | undefined;
  gzipMinBytes: number;
  runStepsOf: RunStepsOf;
  holdFor: HoldFor;
}

export function start(host: Host): Started {
  const { upstreams, unsent, resolver, runStepsOf } = host;
  // All handles of a batch may belong to the server with the lowest limit.
  const least = Math.min(...upstreams.servers.map(({ concurrency }) => concurrency));
  const part = (divisor: number): number => Math.max(1, Math.floor(least / divisor));
  const count = host.metrics.counterOf(METRICS.handles);
  // All batches together use at most half of the slots; the rest remain free for single reads.
  const streamElements = createStreamElements({
    perBatch: part(4),
    total: part(2),
    serverOf: upstreams.serverOf,
  });
  const shared = {
    resolver,
    runStepsOf,
    streamElements,
    holdFor: createHoldFor(unsent, host),
    onStale: host.metrics.countStale,
    onElement(result: Result) {
      count({ result });
    },
    hooks: host.hooks,
    onUnexpected: createReportUnexpected(host),
  };
  return {
    handlers: ({ settings: { http }, ...parts }) => createHandlers({ ...shared, ...parts, ...http }),
  };
}

function createHandlers(deps: BatchDeps): Record<'batchByQuery' | 'batchByBody', Listener> {
  const { withBody, maxBodyBytes } = deps;
  return {
    async batchByQuery(req, res) {
      assertAnonymous(req);
      await answerBatch(deps, { req, res, batch: readBatchQuery(contextOf(res).target.query) });
    },
    async batchByBody(req, res) {
      assertAnonymous(req);
      // Accepts any Content-Type, because `curl -d` declares a form.
      const body = await withBody(req, (bytes, memory) =>
        parseJsonBody(req, bytes, memory, { maxBodyBytes, limits: BATCH_LIMITS, codes: CODES }),
      );
      const batch = readBatchBody(body, contextOf(res).target.query);
      await answerBatch(deps, { req, res, batch });
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

interface BatchCall {
  req: IncomingMessage;
  res: ServerResponse;
  batch: BatchRequest;
}

async function answerBatch(deps: BatchDeps, { req, res, batch }: BatchCall): Promise<void> {
  const { handles, query } = batch;
  // The request itself has already been charged.
  if (handles.length > 1) await deps.charge(req, handles.length - 1);
  const context = contextOf(res);
  context.result = 'batch';
  const { contentType, before, after } = frameOf(context.format);
  const isGzip = isWorthGzip(req, handles.length, deps.gzipMinBytes);
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
  const runSteps = deps.runStepsOf(res);
  const { refusalOfHandle } = deps;
  const startElement = createStartElement(deps, {
    query,
    pretty: context.format.pretty,
    runSteps,
    caller: inBackground(context.caller),
    refusalOf: refusalOfHandle && ((handle) => refusalOfHandle(req, handle)),
  });
  const left = signalOfLeaving(res);
  const hold = holdBeside(deps.holdFor(res), charsIn(handles) + (isGzip ? GZIP_BYTES : 0));
  const elements = deps.streamElements({ startElement, names: handles, signal: left, runSteps, hold });
  await send(res, framed(elements, `${before}[`, `\n]${after}`), isGzip).catch((error: unknown) => {
    if (!left.aborted) throw error;
  });
}

/** Memory of a gzip stream: zlib's window and hash tables (zconf.h), and one chunk of output. */
const GZIP_BYTES = (128 + 128 + 16) * 1024;

const charsIn = (texts: readonly string[]): number => texts.reduce((sum, { length }) => sum + length, 0);

/** Counts what a batch holds until its end in addition to its elements. */
function holdBeside(hold: HoldUnsent, besideBytes: number): HoldUnsent {
  hold(besideBytes);
  return (bytes) => {
    hold(besideBytes + bytes);
  };
}

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

function send(res: Writable, text: AsyncIterable<string | Buffer>, isGzip: boolean): Promise<void> {
  return isGzip ? pipeline(text, createGzip(FLUSH_EACH), res) : pipeline(text, res);
}

/**
 * Estimated size of an element with a short record (bytes), because the total length is not known in advance.
 */
const USUAL_ELEMENT_BYTES = 500;

const isWorthGzip = ({ headers }: IncomingMessage, handles: number, minBytes: number): boolean =>
  acceptsGzip(headers['accept-encoding']?.toString()) && handles * USUAL_ELEMENT_BYTES >= minBytes;
