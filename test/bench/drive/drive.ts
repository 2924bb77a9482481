// Drives a server from a separate process with wrk, or with autocannon if wrk is missing.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Child, scratchFolder, start } from '../children.js';
import { isInstalled } from '../cores.js';
import { BASIC } from '../records.js';
import type { Figures } from '../results.js';
import type { Wire } from './callers-by-socket.js';

export const CONNECTIONS = 64;
const HAS_WRK = isInstalled('wrk');
export const DRIVER = HAS_WRK ? 'wrk' : 'autocannon';
/**
 * Path relative to dist-bench/test/bench/drive, the compiled location of this file; the Lua file is not
 * copied.
 */
const SCRIPT = fileURLToPath(new URL('../../../../test/bench/drive/wrk.lua', import.meta.url));
const AUTOCANNON = fileURLToPath(new URL('../programs/autocannon.js', import.meta.url));

const SOCKETS = fileURLToPath(new URL('../programs/sockets.js', import.meta.url));

const SCHEDULED = fileURLToPath(new URL('../programs/scheduled-hits.js', import.meta.url));

const HOSTILE = fileURLToPath(new URL('../programs/hostile.js', import.meta.url));

const OVERLOAD = fileURLToPath(new URL('../programs/overload.js', import.meta.url));

export interface Driven {
  answers: number;
  seconds: number;
  /** Responses with a status above 399. */
  badStatus: number;
  /** Connection errors and response timeouts. */
  broken: number;
  p50Ms: number;
  p99Ms: number;
}

/** Path of a file with one target per line. */
export type TargetFile = string & { readonly __targets: unique symbol };

export function writeTargets(targets: readonly string[]): TargetFile {
  const file = join(scratchFolder(), 'targets');
  writeFileSync(file, targets.join('\n'));
  return file as TargetFile;
}

export interface Drive {
  url: string;
  targets: TargetFile;
  seconds: number;
  connections?: number;
}

/** Requests the targets cyclically, in order. */
export function drive(work: Drive): Promise<Driven> {
  return run(work, 'again');
}

/**
 * Requests each target once, except that the last few, up to the number of connections, may be skipped or
 * repeated.
 */
export function driveOnce({
  mostSeconds,
  ...work
}: Omit<Drive, 'seconds'> & { mostSeconds: number }): Promise<Driven> {
  return run({ ...work, seconds: mostSeconds }, 'once');
}

/** Requests one handle over plain sockets, and counts unexpected responses as bad. */
export function driveBySockets({
  wire,
  port,
  handle,
  expected,
  seconds,
  callers = CONNECTIONS,
  pauseMs = 0,
}: SocketDrive): Promise<Driven> {
  const command = [process.execPath, SOCKETS, wire, String(port), String(callers), String(seconds)];
  return runDriver([...command, handle, expected.toString('base64'), String(pauseMs)]);
}

export interface SocketDrive {
  wire: Wire;
  port: number;
  handle: string;
  expected: Buffer;
  seconds: number;
  callers?: number;
  /** Pause between a caller's requests. */
  pauseMs?: number;
}

export interface OverloadDrive {
  url: string;
  /** The upstream's control URL. */
  control: string;
  /** Duration per limit. */
  seconds: number;
  limits: readonly number[];
}

/** Measures misses at each upstream capacity. */
export function driveOverload({ url, control, seconds, limits }: OverloadDrive): Promise<Figures[]> {
  return runDriver<Figures[]>([
    process.execPath,
    OVERLOAD,
    url,
    control,
    String(seconds),
    ...limits.map(String),
  ]);
}

export interface ScheduledDrive {
  port: number;
  handle: string;
  expected: Buffer;
  perSecond: number;
  seconds: number;
  /** `http-close` opens a new connection for each hit. */
  wire: 'http' | 'http-close';
}

export interface Scheduled extends Driven {
  /** Percentage of due hits that were in time. */
  inTimePercent: number;
  /** Hits still pending two seconds after the last was due. */
  unanswered: number;
}

/**
 * Requests one handle on a fixed schedule, regardless of slow responses, and measures latency from the due
 * time.
 */
export function driveScheduled({
  port,
  handle,
  expected,
  perSecond,
  seconds,
  wire,
}: ScheduledDrive): Promise<Scheduled> {
  const command = [process.execPath, SCHEDULED, String(port), handle, expected.toString('base64')];
  return runDriver([...command, String(perSecond), String(seconds), wire]);
}

interface HostileDrive {
  url: string;
  /** Key of an entry in EXPENSIVE_REQUESTS. */
  row: string;
  connections: number;
}

/** Responses by status: 2xx and 3xx, expected 4xx (ANSWERED), 503, and all others. */
export type HostileFigures = Record<'done' | 'refused' | 'busy' | 'wrong', number>;

/** Timeout for the first response, after which the work starts anyway. */
const FIRST_ANSWER_MS = 10_000;
const LAST_ANSWERS_MS = 60_000;

/** Sends an expensive request repeatedly, and runs `work` meanwhile, starting after the first response. */
export async function besideHostile<T>(
  { url, row, connections }: HostileDrive,
  work: () => Promise<T>,
): Promise<{ hostile: HostileFigures; done: T }> {
  const command = [process.execPath, HOSTILE, url, row, String(connections)];
  const child = start(command, { place: 'driver', stdout: 'pipe' });
  const output = outputOf(child);
  try {
    await Promise.race([output.begun, pause(FIRST_ANSWER_MS, undefined, { ref: false })]);
    const done = await work();
    // The last responses may take longer than the timeout for stopping a child.
    child.process.kill('SIGTERM');
    const late = pause(LAST_ANSWERS_MS, 'no last answers', { ref: false });
    return { hostile: lastLineOf(command, await Promise.race([output.whole, late])) as HostileFigures, done };
  } finally {
    await child.stop();
  }
}

function run(
  { url, targets, seconds, connections = CONNECTIONS }: Drive,
  how: 'again' | 'once',
): Promise<Driven> {
  const last = [targets, BASIC, how];
  const command = HAS_WRK
    ? [
        'wrk',
        '-t1',
        `-c${connections}`,
        `-d${Math.ceil(seconds)}s`,
        '--timeout',
        '30s',
        '-s',
        SCRIPT,
        url,
        ...last,
      ]
    : [process.execPath, AUTOCANNON, url, String(connections), String(seconds), ...last];
  return runDriver<Driven>(command);
}

async function runDriver<T>(command: readonly string[]): Promise<T> {
  const child = start(command, { place: 'driver', stdout: 'pipe' });
  try {
    return lastLineOf(command, await outputOf(child).whole) as T;
  } finally {
    await child.stop();
  }
}

/** Collects a child's output: `begun` resolves at the first output, `whole` with all of it at the end. */
function outputOf({ process: { stdout }, process: child }: Child): {
  begun: Promise<unknown>;
  whole: Promise<string>;
} {
  let text = '';
  stdout?.setEncoding('utf8').on('data', (piece: string) => (text += piece));
  const closed = new Promise((resolve) => child.once('close', resolve));
  const first = new Promise((resolve) => stdout?.once('data', resolve));
  return { begun: Promise.race([first, closed]), whole: closed.then(() => text) };
}

function lastLineOf(command: readonly string[], text: string): unknown {
  const line = text.trim().split('\n').at(-1) ?? '';
  if (!/^[[{]/.test(line)) throw new Error(`${command.slice(0, 2).join(' ')} said nothing of use: ${text}`);
  return JSON.parse(line);
}
