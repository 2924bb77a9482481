// The log: one JSON line per event, without credentials.
import { setTimeout as sleep } from 'node:timers/promises';
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino';
import { redactLine } from './redact.js';

export { LOG_LEVELS } from '../config/schema-server.js';
export type { Logger };

export interface LoggerOptions {
  level: string;
  /** Where lines go; stdout when left out. */
  destination?: DestinationStream;
}

export function createLogger({ level, destination }: LoggerOptions): Logger {
  const options = {
    level,
    formatters: { level: (label: string) => ({ level: label }) },
    timestamp: stdTimeFunctions.isoTime,
    hooks: { streamWrite: redactLine },
  };
  return pino(options, destination ?? bufferedStdout());
}

/** A write for each line would cost more than the answer it tells of; at the process' exit nothing is left behind. */
const bufferedStdout = (): DestinationStream =>
  pino.destination({ dest: 1, sync: false, minLength: 4096, periodicFlush: 100 });

/** A log that nobody takes must not keep a process from its end (ms). */
const FLUSH_MS = 500;

/**
 * Waits for what is being written. Were the process to end meanwhile, the lines that follow would be written
 * before it, and it perhaps never.
 */
export async function flushLog(logger: Logger): Promise<void> {
  const flushed = new Promise<void>((done) => {
    logger.flush(() => {
      done();
    });
  });
  await Promise.race([flushed, sleep(FLUSH_MS, undefined, { ref: false })]);
}
