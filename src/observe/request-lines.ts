// Writes the log lines of requests, faster than pino does.
import { type DestinationStream, pino } from 'pino';
import { type LogInternals, type Logger, redactJson } from './logger.js';
import type { LabelValue } from './metric-list.js';

export interface LoggedHit {
  family: LabelValue<'interface'>;
  /** HTTP method, or native operation. */
  method: string;
  handle: string;
  /** Raw request target, logged without its query; undefined for native messages. */
  target?: string;
  /** HTTP status, or native response code. */
  status: number;
}

export interface LoggedRequest {
  interface: LabelValue<'interface'>;
  method: string;
  handle: string | undefined;
  /** Undefined for native messages. */
  path: string | undefined;
  status: number;
  result: string;
  ms?: number;
  /** Whether a forwarded response was cut after its status was sent, unless its client has left. */
  aborted?: boolean;
}

interface RequestLines {
  /** Logs a hit. `requestId`, if the request had one, is not escaped; `ms`: only of timed hits. */
  log: (line: LoggedHit, requestId: string | undefined, ms: number | undefined) => void;
  /** Logs a request. `requestId` is not escaped. */
  logRequest: (request: LoggedRequest, requestId: string) => void;
  /** Writes the lines of hits that are still in memory. */
  flush: () => void;
}

const FLUSH_CHARS = 16_384;
const FLUSH_MS = 100;

/**
 * Logs requests faster than pino, whose log call costs a large part of a response. Buffers the lines of hits, and
 * caches everything except the times and the request id for each `LoggedHit`. Uses `pino.symbols`, documented for
 * integrations, because nothing else gives access to the stream and the bindings.
 */
export function createRequestLines(logger: Logger, now: () => number): RequestLines {
  const { [pino.symbols.streamSym]: stream, [pino.symbols.chindingsSym]: bindings } =
    logger as unknown as Partial<LogInternals>;
  // A program that embeds the proxy may give a logger of another copy of pino, which has other symbols.
  return stream === undefined || bindings === undefined
    ? createPlainLines(logger)
    : createFastLines(logger, now, { stream, bindings });
}

/** Writes the lines with a call of the logger for each. */
function createPlainLines(logger: Logger): RequestLines {
  function write(request: LoggedRequest, requestId: string | undefined): void {
    if (!logger.isLevelEnabled('info')) return;
    logger.info({ requestId, ...(JSON.parse(redactJson(JSON.stringify(request))) as object) }, 'request');
  }
  return {
    log: (line, requestId, ms) =>
      write({ ...describeHit(line), ...(ms !== undefined && { ms: roundMs(ms) }) }, requestId),
    logRequest: write,
    flush: () => undefined,
  };
}

function createFastLines(
  logger: Logger,
  now: () => number,
  { stream, bindings }: { stream: DestinationStream; bindings: string },
): RequestLines {
  const restOf = new WeakMap<LoggedHit, string>();
  const head = createHead(now);
  let buffer = '';
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (buffer !== '') stream.write(buffer);
    buffer = '';
  }

  function log(line: LoggedHit, requestId: string | undefined, ms: number | undefined): void {
    if (!logger.isLevelEnabled('info')) return;
    let rest = restOf.get(line);
    if (rest === undefined) {
      rest = bindings + restOfLine(describeHit(line));
      restOf.set(line, rest);
    }
    buffer += head();
    if (requestId !== undefined) buffer += `,"requestId":"${requestId}"`;
    if (ms !== undefined) buffer += `,"ms":${roundMs(ms)}`;
    buffer += rest;
    if (buffer.length >= FLUSH_CHARS) flush();
    else timer ??= setTimeout(flush, FLUSH_MS).unref();
  }

  function logRequest(request: LoggedRequest, requestId: string): void {
    stream.write(`${head()},"requestId":"${requestId}"${bindings}${restOfLine(request)}`);
  }

  return { log, logRequest, flush };
}

const describeHit = ({ family, method, handle, target, status }: LoggedHit): LoggedRequest => ({
  interface: family,
  method,
  handle,
  path: target?.split('?', 1)[0],
  status,
  result: 'hit',
});

const roundMs = (ms: number): number => Math.round(ms * 1000) / 1000;

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
