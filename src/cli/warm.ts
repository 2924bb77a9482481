// The `warm` command: requests listed handles to cache them; with a state file, only those that are due.
import { appendFileSync, readFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import { MAX_HANDLE_BYTES, handleToPath, printableText } from '../handle/handle.js';
import { MAX_WAIT_MS, failureReason, streamBody } from './client.js';
import { type ListSource, handlesUnderPrefix } from './handles.js';
import { sendPaced } from './paced-requests.js';
import { EXIT, Failure, countText, print, printNote, startCounter } from './terminal.js';

interface WarmOptions extends ListSource {
  concurrency: number;
  rate: number;
  state?: string;
}

interface WarmSummary {
  warmed: number;
  notFound: number;
  skipped: number;
  failures: { handle: string; reason: string }[];
}

const MAX_PRINTED_FAILURES = 10;
/** Time (ms) to complete requests that are in flight at an interrupt, so that the next run does not repeat them. */
const GRACE_MS = 2000;

export async function warm(file: string | undefined, options: WarmOptions): Promise<void> {
  const state = openState(options.state);
  const handles = await handlesUnderPrefix(file, options);
  const todo = handles.filter((handle) => state.isDue(handle));
  const queue = todo.values();
  const summary: WarmSummary = {
    warmed: 0,
    notFound: 0,
    skipped: handles.length - todo.length,
    failures: [],
  };
  const progress = startCounter('handle', todo.length);
  const isInterrupted = await sendPaced({
    concurrency: options.concurrency,
    rate: options.rate,
    next: () => queue.next().value,
    async send(handle, interrupt) {
      const dueAt = await warmOne(handle, { proxy: options.proxy, interrupt }, summary);
      if (dueAt !== undefined) state.markDone(handle, dueAt);
      progress.add(1);
    },
  });
  progress.stop();
  state.save();
  printSummary(summary, todo.length);
  if (isInterrupted) throw new Failure('interrupted; run the same command to resume if --state was given');
  if (summary.failures.length > 0)
    throw new Failure(`${countText(summary.failures.length, 'handle')} failed`);
}

/** Requests a handle, and returns when it is due again (ms since the epoch); undefined after a failure or an interrupt. */
async function warmOne(
  handle: string,
  { proxy, interrupt }: { proxy: string; interrupt: AbortSignal },
  summary: WarmSummary,
): Promise<number | undefined> {
  const limit = new AbortController();
  // AbortSignal.timeout would keep a timer for each of the last thousands of requests.
  const limitTo = (ms: number): NodeJS.Timeout =>
    setTimeout(() => limit.abort(new Error(`no complete response within ${ms / 1000} s`)), ms);
  let timer = limitTo(MAX_WAIT_MS);
  const onInterrupt = (): void => {
    clearTimeout(timer);
    timer = limitTo(GRACE_MS);
  };
  interrupt.addEventListener('abort', onInterrupt);
  const { signal } = limit;
  try {
    // RFC 9218 §4.1 reserves the lowest urgency for background tasks.
    const headers = { Priority: 'u=7' };
    const response = await fetch(`${proxy}/api/handles/${handleToPath(handle)}`, { headers, signal });
    const start = await readToEnd(streamBody(response, signal));
    if (!response.ok && response.status !== 404) throw new Error(String(response.status));
    if (!RECORD_INTERFACE.test(start)) throw new Error('not a response of the record interface');
    if (response.ok) summary.warmed++;
    else summary.notFound++;
    return Date.now() + freshSeconds(response.headers) * 1000;
  } catch (error) {
    if (!interrupt.aborted) summary.failures.push({ handle, reason: failureReason(error) });
    return undefined;
  } finally {
    clearTimeout(timer);
    interrupt.removeEventListener('abort', onInterrupt);
  }
}

/** How each response of a Handle server begins, a 404 too. */
const RECORD_INTERFACE = /^\s*\{\s*"responseCode"/;

/** Reads a body, and returns only how it begins, because many are read at the same time. */
async function readToEnd(body: ReturnType<typeof streamBody>): Promise<string> {
  let start = '';
  for await (const piece of body)
    if (start.length < 100) start += Buffer.from(piece.subarray(0, 100)).toString('latin1');
  return start;
}

/** Returns the remaining TTL in seconds; 0 for a stale response, whose handle is due immediately. */
const freshSeconds = (headers: Headers): number =>
  Math.max(0, Number(OUR_TTL.exec(headers.get('Cache-Status') ?? '')?.[1] ?? 0));

/** Matches only our member (RFC 9211 §2); a longer number would exceed the times of a date. */
const OUR_TTL = /(?:^|,)\s*handle-resolver-proxy;[^,]*\bttl=(-?\d{1,10})\b/;

/** Counts failed handles as `left`, because the next run retries them. */
function printSummary({ warmed, notFound, skipped, failures }: WarmSummary, todo: number): void {
  const left = todo - warmed - notFound;
  for (const { handle, reason } of failures.slice(0, MAX_PRINTED_FAILURES))
    printNote(`${printableText(handle)}: ${reason}`);
  print(
    `${warmed} warmed, ${notFound} not found, ${failures.length} failed, ${skipped} not due; ${left} left`,
  );
}

const SAVE_EVERY_MS = 200;

/** Opens the state file, which a run only appends to; undefined disables it. @throws Failure if unusable */
export function openState(file: string | undefined, now: () => number = Date.now) {
  const known = file === undefined ? new Map<string, number>() : readState(file);
  let unsaved = '';
  let savedAt = now();
  const save = (): void => {
    if (file !== undefined && unsaved !== '') appendFileSync(file, unsaved);
    unsaved = '';
    savedAt = now();
  };
  return {
    isDue: (handle: string): boolean => (known.get(handle) ?? 0) <= now(),
    /** Records when the handle is due again (ms since the epoch), unless it cannot be a line of the file. */
    markDone(handle: string, dueAt: number): void {
      if (isStateHandle(handle)) unsaved += stateLine(handle, dueAt);
      if (now() - savedAt > SAVE_EVERY_MS) save();
    },
    save,
  };
}

const stateLine = (handle: string, dueAt: number): string => `${handle}\t${new Date(dueAt).toISOString()}\n`;

function readState(file: string): Map<string, number> {
  try {
    appendFileSync(file, '');
    return readStateLines(file, readFileSync(file));
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure(`cannot use the state file: ${failureReason(error)}`, EXIT.usage);
  }
}

function readStateLines(file: string, bytes: Buffer): Map<string, number> {
  const end = bytes.lastIndexOf('\n') + 1;
  if (end === 0 && bytes.length > 0) throw new Failure(describeDamage(file, 1), EXIT.usage);
  const lines = bytes.toString('utf8', 0, end).split('\n').slice(0, -1);
  const known = new Map<string, number>();
  for (const [at, line] of lines.entries()) {
    const [handle = '', time] = line.split('\t');
    // Version 0.1.0 wrote lines without a time.
    const dueAt = time === undefined ? 0 : Date.parse(time);
    if (!isStateHandle(handle) || Number.isNaN(dueAt))
      throw new Failure(describeDamage(file, at + 1), EXIT.usage);
    known.set(handle, dueAt);
  }
  if (end < bytes.length) dropCutLine(file, end);
  if (lines.length > 2 * known.size) compact(file, known);
  return known;
}

/** Removes superseded lines, because the file would otherwise grow with each run. */
function compact(file: string, known: Map<string, number>): void {
  const temporary = `${file}.tmp`;
  const lines = [...known].map(([handle, dueAt]) => stateLine(handle, dueAt));
  // Flushed, because a disk may find only then that it has no room.
  writeFileSync(temporary, lines.join(''), { flush: true });
  renameSync(temporary, file);
}

/** Drops a partial line left by a killed process, because it could name a different handle. */
function dropCutLine(file: string, end: number): void {
  truncateSync(file, end);
  printNote(`${file}: the last line is cut off, so its handle is requested again`);
}

const isStateHandle = (line: string): boolean =>
  line !== '' && Buffer.byteLength(line) <= MAX_HANDLE_BYTES && !/[\u0000-\u001f\ufffd\p{Cs}]/u.test(line);

const describeDamage = (file: string, line: number): string =>
  `${file}: line ${line} is not a handle, or not a handle, a tab and a time. Remove the line, or delete the file to start from the beginning.`;
