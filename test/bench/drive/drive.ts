// Drives a server from another process, by wrk, or by autocannon if wrk is missing.
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
/** This file is compiled to dist-bench/test/bench/drive; the Lua file stays in place. */
const SCRIPT = fileURLToPath(new URL('../../../../test/bench/drive/wrk.lua', import.meta.url));
const AUTOCANNON = fileURLToPath(new URL('../programs/autocannon.js', import.meta.url));

const SOCKETS = fileURLToPath(new URL('../programs/sockets.js', import.meta.url));

const SCHEDULED = fileURLToPath(new URL('../programs/scheduled-hits.js', import.meta.url));

const HOSTILE = fileURLToPath(new URL('../programs/hostile.js', import.meta.url));

const OVERLOAD = fileURLToPath(new URL('../programs/overload.js', import.meta.url));

export interface Driven {
  answers: number;
  seconds: number;
  /** Responses with a status over 399. */
  badStatus: number;
  /** Broken connections, and responses that did not come in time. */
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

/** Requests each target once. The last few, up to the number of connections, may be omitted or sent twice. */
export function driveOnce({
  mostSeconds,
  ...work
}: Omit<Drive, 'seconds'> & { mostSeconds: number }): Promise<Driven> {
  return run({ ...work, seconds: mostSeconds }, 'once');
}

/** Requests one handle by callers over plain sockets; responses that differ from the expected one count as bad. */
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
  /** Pause of each caller before its next request. */
  pauseMs?: number;
}

export interface OverloadDrive {
  url: string;
  /** Control URL of the upstream. */
  control: string;
  /** Duration under each limit. */
  seconds: number;
  limits: readonly number[];
}

/** Figures of the misses under each limit. */
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
  /** Share of all hits that were due. */
  inTimePercent: number;
  /** Hits neither answered nor failed two seconds after the last was due. */
  unanswered: number;
}

/** Hits of one handle on a fixed schedule, however slow the responses; latency counts from the time a hit was due. */
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
  /** Name of a row of EXPENSIVE_REQUESTS. */
  row: string;
  connections: number;
}

/** Responses by status: 2xx and 3xx, the 4xx that a row may have (ANSWERED), 503, and everything else. */
export type HostileFigures = Record<'done' | 'refused' | 'busy' | 'wrong', number>;

/** The work begins after this time even without a response. */
const FIRST_ANSWER_MS = 10_000;
const LAST_ANSWERS_MS = 60_000;

/** Does the work while an expensive request is sent repeatedly, from its first response on. */
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
    // Its last responses may take longer than the time limit for ending a child.
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

/** Output of a child: its first line, and all of it at the end. */
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
