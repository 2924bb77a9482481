// Counts, times and logs prepared hits on all interfaces, and writes the log lines of ordinary requests.
import { pino } from 'pino';
import { type IsLogged, type LogInternals, type Logger, redactJson } from './logger.js';
import type { LabelValue } from './metric-list.js';
import type { Metrics } from './metrics.js';

type Family = LabelValue<'interface'>;

/** A hit for log and metrics. All hits of a prepared response share one object: copy it to keep it. */
export interface PreparedHit {
  family: Family;
  /** HTTP method, or native operation. */
  method: string;
  handle: string;
  /** Raw request target, logged without its query; undefined for native messages. */
  target?: string;
  /** HTTP status, or native response code. */
  status: number;
  exists: boolean;
  /** Hits that one plugin, the reports, has not counted yet; any other leaves it as it is, and counts each call. */
  repeats: number;
}

export interface LoggedRequest {
  interface: Family;
  method: string;
  handle: string | undefined;
  /** Undefined for native messages. */
  path: string | undefined;
  status: number;
  result: string;
  ms?: number;
}

export type Hits = ReturnType<typeof createHits>;

interface HitsDeps {
  metrics: Metrics;
  log: Logger;
  isLogged: IsLogged;
  hooks: { sentPrepared: readonly ((hit: PreparedHit) => void)[] };
  clock: { wall: () => number; monotonic: () => number };
}

/** Maximum hits per second that are all timed; above it, 1 in 16 stands for all: clocks are costly. */
const MAX_EXACT = 1000;
const SAMPLE = 16;
const SECOND_MS = 1000;

export function createHits({ metrics, log: logger, isLogged, hooks, clock: { wall, monotonic } }: HitsDeps) {
  const { sentPrepared } = hooks;
  const { log, logRequest, flush } = createRequestLines(logger, wall);
  const families = new Map<Family, FamilyHits>();
  let secondStartedAt = monotonic();
  let hitsOfSecond = 0;

  function measure({ family, handle }: PreparedHit, startedAt: number, weight: number): number {
    const endedAt = monotonic();
    if (endedAt - secondStartedAt >= SECOND_MS) {
      secondStartedAt = endedAt;
      hitsOfSecond = 0;
    }
    metrics.observeHits({ interface: family, handle, ms: endedAt - startedAt, weight });
    return endedAt - startedAt;
  }

  return {
    /** Returns a start time to pass to `count`; undefined if this hit is not sampled. */
    startTimer: (): number | undefined =>
      hitsOfSecond < MAX_EXACT || hitsOfSecond % SAMPLE === 0 ? monotonic() : undefined,
    /** Counts a hit. `requestId` is set only if the request had one. */
    count(hit: PreparedHit, requestId: string | undefined, startedAt: number | undefined): void {
      const { family, status } = hit;
      let hits = families.get(family);
      if (hits === undefined) families.set(family, (hits = { byStatus: new Map(), unmeasured: 0 }));
      let count = hits.byStatus.get(status);
      if (count === undefined) hits.byStatus.set(status, (count = metrics.hitsOf(family, status)));
      count.value++;
      hits.unmeasured++;
      hitsOfSecond++;
      for (const each of sentPrepared) each(hit);
      let ms: number | undefined;
      if (startedAt !== undefined) {
        ms = measure(hit, startedAt, hits.unmeasured);
        hits.unmeasured = 0;
      }
      if (isLogged('hit')) log(hit, requestId, ms);
    },
    logRequest,
    flush,
  };
}

interface FamilyHits {
  /** The counts in the metrics, because it takes long to find them by their labels. */
  byStatus: Map<number, { value: number }>;
  /** Hits since the last timed one; the next timed hit's duration counts for them too. */
  unmeasured: number;
}

const FLUSH_CHARS = 16_384;
const FLUSH_MS = 100;

/**
 * Logs requests faster than pino, whose log call costs a large part of a response. Buffers the lines of hits, and
 * caches everything except the times and the request id for each `PreparedHit`. Uses `pino.symbols`, documented for
 * integrations, because nothing else gives access to the stream and the bindings.
 */
function createRequestLines(logger: Logger, now: () => number) {
  const { [pino.symbols.streamSym]: stream, [pino.symbols.chindingsSym]: bindings } =
    logger as unknown as LogInternals;
  const restOf = new WeakMap<PreparedHit, string>();
  const head = createHead(now);
  let buffer = '';
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (buffer !== '') stream.write(buffer);
    buffer = '';
  }

  /** Appends a line. `requestId`, if the request had one, is not escaped; `ms`: only of timed hits. */
  function log(line: PreparedHit, requestId: string | undefined, ms: number | undefined): void {
    if (!logger.isLevelEnabled('info')) return;
    let rest = restOf.get(line);
    if (rest === undefined) {
      const { family, method, handle, target, status } = line;
      const path = target?.split('?', 1)[0];
      rest = bindings + restOfLine({ interface: family, method, handle, path, status, result: 'hit' });
      restOf.set(line, rest);
    }
    buffer += head();
    if (requestId !== undefined) buffer += `,"requestId":"${requestId}"`;
    if (ms !== undefined) buffer += `,"ms":${Math.round(ms * 1000) / 1000}`;
    buffer += rest;
    if (buffer.length >= FLUSH_CHARS) flush();
    else timer ??= setTimeout(flush, FLUSH_MS).unref();
  }

  /** Writes a line. `requestId` is not escaped. */
  function logRequest(request: LoggedRequest, requestId: string): void {
    stream.write(`${head()},"requestId":"${requestId}"${bindings}${restOfLine(request)}`);
  }

  return { log, logRequest, flush };
}

/** Creates a formatter of line starts, which formats at most once per millisecond. */
function createHead(now: () => number): () => string {
  let moment = -1;
  let text = '';
  return () => {
    const at = now();
    if (at !== moment) {
      moment = at;
      text = `{"level":"info","time":"${new Date(at).toISOString()}"`;
    }
    return text;
  };
}

function restOfLine(request: LoggedRequest): string {
  const members = redactJson(JSON.stringify({ ...request, msg: 'request' }));
  return `,${members.slice(1)}\n`;
}
