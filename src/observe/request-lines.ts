// Writes the log lines of requests, faster than pino does.
import { pino } from 'pino';
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
}

const FLUSH_CHARS = 16_384;
const FLUSH_MS = 100;

/**
 * Logs requests faster than pino, whose log call costs a large part of a response. Buffers the lines of hits, and
 * caches everything except the times and the request id for each `LoggedHit`. Uses `pino.symbols`, documented for
 * integrations, because nothing else gives access to the stream and the bindings.
 */
export function createRequestLines(logger: Logger, now: () => number) {
  const { [pino.symbols.streamSym]: stream, [pino.symbols.chindingsSym]: bindings } =
    logger as unknown as LogInternals;
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

  /** Appends a line. `requestId`, if the request had one, is not escaped; `ms`: only of timed hits. */
  function log(line: LoggedHit, requestId: string | undefined, ms: number | undefined): void {
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
