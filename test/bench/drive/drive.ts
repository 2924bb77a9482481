// Drives a server from another process, by wrk or, where that is missing, by autocannon.
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
/** Compiled to dist-bench/test/bench/drive; the Lua file stays where it is. */
const SCRIPT = fileURLToPath(new URL('../../../../test/bench/drive/wrk.lua', import.meta.url));
const AUTOCANNON = fileURLToPath(new URL('../programs/autocannon.js', import.meta.url));

const SOCKETS = fileURLToPath(new URL('../programs/sockets.js', import.meta.url));

const SCHEDULED = fileURLToPath(new URL('../programs/scheduled-hits.js', import.meta.url));

const HOSTILE = fileURLToPath(new URL('../programs/hostile.js', import.meta.url));

const OVERLOAD = fileURLToPath(new URL('../programs/overload.js', import.meta.url));

export interface Driven {
  answers: number;
  seconds: number;
  /** Answers with a status over 399. */
  badStatus: number;
  /** Connections that broke, and answers that did not come in time. */
  broken: number;
  p50Ms: number;
  p99Ms: number;
}

/** A file with a target on each line. */
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

/** Requests the targets in order, cyclically. */
export function drive(work: Drive): Promise<Driven> {
  return run(work, 'again');
}

/** Requests each target once. The last few, up to the number of connections, may be left out or sent twice. */
export function driveOnce({
  mostSeconds,
  ...work
}: Omit<Drive, 'seconds'> & { mostSeconds: number }): Promise<Driven> {
  return run({ ...work, seconds: mostSeconds }, 'once');
}

/** One handle, by callers over plain sockets; answers that differ from the expected one are counted as bad. */
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
  /** Of each caller before it asks again. */
  pauseMs?: number;
}

export interface OverloadDrive {
  url: string;
  /** Of the upstream. */
  control: string;
  /** Under each limit. */
  seconds: number;
  limits: readonly number[];
}

/** The figures of the misses under each limit. */
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
}

export interface Scheduled extends Driven {
  /** Of all hits that were due. */
  inTimePercent: number;
  /** Neither answered nor broken, two seconds after the last was due. */
  unanswered: number;
}

/** Hits of one handle by the clock, however slow the answers are; times count from when a hit was due. */
export function driveScheduled({
  port,
  handle,
  expected,
  perSecond,
  seconds,
}: ScheduledDrive): Promise<Scheduled> {
  const command = [process.execPath, SCHEDULED, String(port), handle, expected.toString('base64')];
  return runDriver([...command, String(perSecond), String(seconds)]);
}

interface HostileDrive {
  url: string;
  /** Of EXPENSIVE_REQUESTS. */
  row: string;
  connections: number;
}

/** Answers by status: 2xx and 3xx, the 4xx that a row may have (ANSWERED), 503, and all others and none. */
export type HostileFigures = Record<'done' | 'refused' | 'busy' | 'wrong', number>;

/** After this time without an answer the work begins all the same. */
const FIRST_ANSWER_MS = 10_000;
const LAST_ANSWERS_MS = 60_000;

/** Does the work while an expensive request is sent again and again, from its first answer on. */
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
    // Its last answers may take longer than a child gets to end.
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

/** What a child writes: resolved at its first line, and at its end. */
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
