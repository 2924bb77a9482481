// Creates the logger, which writes JSON lines and redacts credentials.
import { setTimeout as sleep } from 'node:timers/promises';
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino';

import type { Live } from '../config/live.js';
import type { Config } from '../config/schema.js';
import { LogBuffer, stdoutBuffer } from './log-buffer.js';

export { LOG_LEVELS } from '../config/schema-server.js';
export type { DestinationStream as LogDestination, Logger };

export type IsLogged = (result: string) => boolean;

interface LoggerOptions {
  level: string;
  /** Defaults to stdout. */
  destination?: DestinationStream;
}

export function createLogger({ level, destination }: LoggerOptions): Logger {
  const options = {
    level,
    formatters: { level: (label: string) => ({ level: label }) },
    timestamp: stdTimeFunctions.isoTime,
    hooks: { streamWrite: redactLine },
  };
  return pino(options, destination ?? stdoutBuffer());
}

/** Decides which requests to log. By default, hits are excluded, because they are the most frequent. */
export const createIsLogged =
  (settings: Live<Config>): IsLogged =>
  (result) => {
    const { requests } = settings.current.log;
    return requests === 'all' || (requests === 'misses-and-errors' && result !== 'hit');
  };

/** Reports the number of lines dropped because stdout does not accept them. */
export function onDroppedLines(logger: Logger, report: (count: number) => void): void {
  const { [pino.symbols.streamSym]: destination } = logger as unknown as LogInternals;
  if (destination instanceof LogBuffer) destination.onDropped = report;
}

/** Internals of a logger, under `pino.symbols`, which are documented for integrations. */
export interface LogInternals {
  [pino.symbols.streamSym]: DestinationStream;
  [pino.symbols.chindingsSym]: string;
}

/** Maximum wait for a blocked log destination at exit (ms). */
const FLUSH_MS = 500;

/** Waits for pending writes, so that lines stay in order and none is lost at exit. */
export async function flushLog(logger: Logger): Promise<void> {
  const flushed = new Promise<void>((done) => {
    logger.flush(() => {
      done();
    });
  });
  await Promise.race([flushed, sleep(FLUSH_MS, undefined, { ref: false })]);
}

const REDACTED = '***';

/** Matches names of JSON members and headers that contain credentials. */
const SECRET_NAME = /authorization|cookie|passw|secret|token|credential|api-?key/i;

/** Matches credentials in a URL: all text between `://` and the last `@` before the path. */
const IN_URL = /(:\/\/)[^\s/]*@/g;

/**
 * Redacts the whole line, because credentials may be in the message, a child logger's bindings or an error.
 * pino's own redaction needs their exact paths.
 */
function redactLine(line: string): string {
  const isSuspect = line.includes('@') || SECRET_NAME.test(line);
  return isSuspect ? `${JSON.stringify(redact(JSON.parse(line)))}\n` : line;
}

function redact(value: unknown): unknown {
  if (typeof value === 'string') return value.replace(IN_URL, `$1${REDACTED}@`);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return redactList(value);
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, SECRET_NAME.test(name) ? REDACTED : redact(inner)]),
  );
}

/** Redacts list items that follow a secret name, as in raw headers, whether flat or in pairs. */
function redactList(list: unknown[]): unknown[] {
  return list.map((inner, at) => {
    const before: unknown = at === 0 ? undefined : list[at - 1];
    return typeof before === 'string' && SECRET_NAME.test(before) ? REDACTED : redact(inner);
  });
}
