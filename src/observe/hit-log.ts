// Request log lines of cache hits, equal to those of pino but written without building objects.
import { type DestinationStream, pino } from 'pino';
import type { Logger } from './logger.js';

export interface HitLine {
  /** The interface. */
  family: string;
  /** Of HTTP, or the operation of a native message. */
  method: string;
  handle: string;
  /** Raw request target, of which only the path is logged; native messages have none. */
  target?: string;
  status: number;
}

interface PinoInternals {
  [pino.symbols.streamSym]: DestinationStream;
  [pino.symbols.chindingsSym]: string;
}

interface HitLog {
  /** `requestId`: only one that came with the request; it is not escaped. `ms`: where it was measured. */
  log: (line: HitLine, requestId: string | undefined, ms: number | undefined) => void;
  /** Writes the buffered lines. */
  flush: () => void;
}

const FLUSH_CHARS = 16_384;
const FLUSH_MS = 100;

/**
 * `pino.symbols` are documented for such integrations; there is no other access to the stream, nor to all bindings.
 *
 * A pino line and its stream cost about 4 µs, a fifth of a whole response. Here lines are buffered, and all but the
 * times is cached per `HitLine` object.
 */
export function createHitLog(logger: Logger, now: () => number): HitLog {
  const { [pino.symbols.streamSym]: stream, [pino.symbols.chindingsSym]: bindings } =
    logger as unknown as PinoInternals;
  const restOf = new WeakMap<HitLine, string>();
  const head = createHead(now);
  let buffer = '';
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (buffer !== '') stream.write(buffer);
    buffer = '';
  }

  function log(line: HitLine, requestId: string | undefined, ms: number | undefined): void {
    if (!logger.isLevelEnabled('info')) return;
    let rest = restOf.get(line);
    if (rest === undefined) {
      rest = bindings + writeRest(line);
      restOf.set(line, rest);
    }
    buffer += head();
    if (requestId !== undefined) buffer += `,"requestId":"${requestId}"`;
    if (ms !== undefined) buffer += `,"ms":${Math.round(ms * 1000) / 1000}`;
    buffer += rest;
    if (buffer.length >= FLUSH_CHARS) flush();
    else timer ??= setTimeout(flush, FLUSH_MS).unref();
  }

  return { log, flush };
}

/** The start of a line, formatted once per millisecond. */
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

function writeRest({ family, method, handle, target, status }: HitLine): string {
  const path = target?.split('?', 1)[0];
  const line = { family, method, handle, path, status, result: 'hit', msg: 'request' };
  const members = JSON.stringify(line);
  return `,${members.slice(1)}\n`;
}
