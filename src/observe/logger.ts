// Creates the logger: JSON lines without credentials, in a bounded buffer, so that a full disk costs lines.
import { constants, fstatSync, openSync, write, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isatty } from 'node:tty';
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino';
import type { Live } from '../config/live.js';
import type { Config } from '../config/schema.js';
import { printableText } from '../handle/handle.js';

export type { DestinationStream as LogDestination, Logger };

export type IsLogged = (result: string) => boolean;

interface LoggerOptions {
  level: string;
  /** Defaults to stdout. */
  destination?: DestinationStream | undefined;
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
  const flushed = new Promise<void>((done) => logger.flush(() => done()));
  await Promise.race([flushed, sleep(FLUSH_MS, undefined, { ref: false })]);
}

const REDACTED = '***';

/** Matches names of JSON members and headers that contain credentials. */
const SECRET_NAME = /authorization|cookie|passw|secret|token|credential|api-?key/i;

/** Matches credentials in a URL, up to the last `@` before its path; encoded too, as in requested handles. */
const IN_URL = /((?::|%3a)(?:\/|%2f){2})(?:[^\s/%]|%(?!2f))*(?:@|%40)/gi;

/** Redacts whole lines: pino's own redaction needs the exact paths of credentials. */
function redactLine(line: string): string {
  const redacted = redactJson(line);
  return redacted === line ? line : `${redacted}\n`;
}

/** Redacts the credentials in a JSON text; returns a text without any suspect part as it is. */
export function redactJson(json: string): string {
  const isSuspect = /@|%40/.test(json) || SECRET_NAME.test(json);
  return isSuspect ? JSON.stringify(redact(JSON.parse(json))) : json;
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

/** Writes a chunk without blocking the event loop, and reports how many bytes were written. */
export interface LogSink {
  write: (chunk: Buffer, done: (error?: NodeJS.ErrnoException | null, written?: number) => void) => void;
  /** Writes what is accepted without waiting, when the process exits. @throws Error when nothing is accepted */
  writeNow: (chunk: Buffer) => number;
}

/** Maximum length of lines in memory: about 17,000, which is two seconds of log at 8,000 logged requests a second. */
const MAX_CHARS = 4 * 1024 * 1024;
/**
 * Lines are written together, because a write costs several cache hits: to a file it wakes a thread, and writes of 4 KiB
 * took a twentieth of a miss. Half the buffer of a pipe on Linux, so that a reader who keeps up never splits a chunk.
 */
const WRITE_CHARS = 32 * 1024;
const WRITE_EVERY_MS = 100;
/** Interval between writes to a terminal whose buffer is full. */
const BUSY_MS = 5;

/**
 * Drops new lines above the maximum, and counts them. A line marks the first dropped line in the log, and another one
 * states their number once half of the buffer has been written. Never calls `flushSync` of sonic-boom, pino's own
 * buffer, which repeats a write that fails with ENOSPC or EIO for ever.
 */
export class LogBuffer {
  #waiting = '';
  /** The rest of the chunk that is being written, or is written again after a failure. */
  #chunk = Buffer.alloc(0);
  #isWriting = false;
  #timer: NodeJS.Timeout | undefined;
  /** Lines dropped since the line that marks the first one; undefined unless lines are dropped now. */
  #dropped: number | undefined;
  #isFailing = false;
  /** Code of the last failed write before lines were dropped, for example ENOSPC. */
  #reason: string | undefined;
  #flushed: (() => void)[] = [];

  /** Called with the number of lines just dropped. */
  onDropped: (count: number) => void = () => undefined;

  /** `format`: converts lines, one or more, before they are counted. */
  constructor(
    private readonly sink: LogSink,
    private readonly format = (lines: string): string => lines,
  ) {}

  /** Takes one or more lines. */
  write(lines: string): void {
    if (this.#length + lines.length > MAX_CHARS) this.#drop(lines);
    else this.#add(lines);
  }

  /** Writes all lines. Calls `done` once they are written, or after a failed write. */
  flush(done: () => void): void {
    this.#flushed.push(done);
    this.#send();
  }

  /** Writes what the sink accepts without waiting. */
  flushNow(): void {
    let rest = Buffer.concat([this.#isWriting ? Buffer.alloc(0) : this.#chunk, Buffer.from(this.#waiting)]);
    try {
      while (rest.length > 0) rest = rest.subarray(this.sink.writeNow(rest));
    } catch {
      // The process exits: nobody reads a report.
    }
  }

  get #length(): number {
    return this.#waiting.length + this.#chunk.length;
  }

  #drop(lines: string): void {
    const count = lines.split('\n').length - 1;
    if (this.#dropped === undefined) this.#add(dropLine({ msg: 'log lines are dropped' }));
    this.#dropped = (this.#dropped ?? 0) + count;
    this.onDropped(count);
  }

  #add(lines: string): void {
    this.#waiting += this.format(lines);
    if (this.#waiting.length >= WRITE_CHARS && !this.#isFailing) this.#send();
    else this.#sendLater();
  }

  #sendLater(ms = WRITE_EVERY_MS): void {
    this.#timer ??= setTimeout(() => this.#send(), ms).unref();
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#isWriting) return;
    if (this.#chunk.length === 0) {
      this.#chunk = Buffer.from(this.#waiting);
      this.#waiting = '';
    }
    if (this.#chunk.length === 0) {
      this.#wake();
      return;
    }
    this.#isWriting = true;
    this.sink.write(this.#chunk, (error, written = 0) => {
      this.#isWriting = false;
      if (error) this.#onFailure(error);
      else this.#onWritten(written);
    });
  }

  #onFailure({ code, message }: NodeJS.ErrnoException): void {
    this.#isFailing = true;
    this.#reason = code ?? message;
    this.#wake();
    this.#sendLater(code === 'EAGAIN' ? BUSY_MS : WRITE_EVERY_MS);
  }

  #onWritten(written: number): void {
    this.#isFailing = false;
    this.#chunk = this.#chunk.subarray(written);
    if (this.#dropped !== undefined && this.#length <= MAX_CHARS / 2) {
      const fields = { dropped: this.#dropped, reason: this.#reason };
      this.#waiting += this.format(dropLine({ ...fields, msg: 'log lines were dropped' }));
      this.#dropped = undefined;
    }
    if (this.#dropped === undefined) this.#reason = undefined;
    const isDue = this.#chunk.length > 0 || this.#waiting.length >= WRITE_CHARS || this.#flushed.length > 0;
    if (isDue) this.#send();
    else if (this.#waiting !== '') this.#sendLater();
  }

  #wake(): void {
    for (const done of this.#flushed.splice(0)) done();
  }
}

const dropLine = (members: object): string =>
  `${JSON.stringify({ level: 'warn', time: new Date().toISOString(), ...members })}\n`;

/**
 * @internal Formats JSON lines for a reader at a terminal: time, level, message and fields; stacks in separate lines. Escapes
 * characters that would change the terminal, because values are untrusted.
 */
export const readableLines = (lines: string): string => lines.replaceAll(/.+/g, readableLine);

/** Members with a separate place in a line, or the same in each line. */
const NOT_FIELDS: readonly string[] = ['level', 'time', 'pid', 'hostname', 'msg', 'err', 'stack'];

function readableLine(line: string): string {
  const members = JSON.parse(line) as Record<string, unknown> & { err?: Record<string, unknown> };
  const { level, time, msg, err = {} } = members;
  const fields = Object.entries({ ...members, ...err }).filter(([name]) => !NOT_FIELDS.includes(name));
  const head = `${String(time).slice(11, 19)}Z ${String(level).toUpperCase().padEnd(5)} ${String(msg)}`;
  const stack = typeof err['stack'] === 'string' ? err['stack'].split('\n') : [];
  return [
    [head, ...fields.map(([name, value]) => `${name}=${fieldText(value)}`)].join('  '),
    ...stack.map((each) => `    ${each.trim()}`),
  ]
    .map(printableText)
    .join('\n');
}

const fieldText = (value: unknown): string =>
  typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);

let ofStdout: LogBuffer | undefined;

/** Returns the buffer of stdout, of which a process has one. */
function stdoutBuffer(): LogBuffer {
  if (ofStdout !== undefined) return ofStdout;
  const buffer = new LogBuffer(stdoutSink(), isatty(STDOUT) ? readableLines : undefined);
  process.on('exit', () => buffer.flushNow());
  // An embedding program may end without `process.exit`, when its event loop is empty.
  process.on('beforeExit', () => buffer.flush(() => undefined));
  return (ofStdout = buffer);
}

const STDOUT = 1;

/**
 * Writes to stdout so that no write blocks a thread: Node.js waits for its threads at exit, and so would never exit.
 * Node.js makes pipes and sockets non-blocking itself. A terminal is opened once more, because `process.stdout` blocks
 * the event loop when a terminal does not read.
 */
function stdoutSink(): LogSink {
  const file = fstatSync(STDOUT);
  if (file.isFIFO() || file.isSocket()) return streamSink(process.stdout);
  return fileSink(file.isCharacterDevice() ? openNonBlocking() : STDOUT);
}

function streamSink(stream: NodeJS.WriteStream): LogSink {
  // Each write reports its own error.
  stream.on('error', () => undefined);
  return {
    write: (chunk, done) => stream.write(chunk, (error) => done(error, chunk.length)),
    writeNow: (chunk) => writeSync(STDOUT, chunk),
  };
}

const fileSink = (descriptor: number): LogSink => ({
  write: (chunk, done) => write(descriptor, chunk, done),
  writeNow: (chunk) => writeSync(descriptor, chunk),
});

function openNonBlocking(): number {
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
  try {
    return openSync(`/proc/self/fd/${STDOUT}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
  } catch {
    // Other systems, or the terminal of another user.
    return STDOUT;
  }
}
