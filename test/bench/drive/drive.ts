// Drives a server from another process, by wrk or, where that is missing, by autocannon.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { scratchFolder, start } from '../children.js';
import { isInstalled } from '../cores.js';
import { BASIC } from '../records.js';
import type { Wire } from './callers-by-socket.js';

export const CONNECTIONS = 64;
const HAS_WRK = isInstalled('wrk');
export const DRIVER = HAS_WRK ? 'wrk' : 'autocannon';
/** Compiled to dist-bench/test/bench/drive; the Lua file stays where it is. */
const SCRIPT = fileURLToPath(new URL('../../../../test/bench/drive/wrk.lua', import.meta.url));
const AUTOCANNON = fileURLToPath(new URL('../programs/autocannon.js', import.meta.url));

const SOCKETS = fileURLToPath(new URL('../programs/sockets.js', import.meta.url));

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
export function driveBySockets({ wire, port, handle, expected, seconds }: SocketDrive): Promise<Driven> {
  const command = [process.execPath, SOCKETS, wire, String(port), String(CONNECTIONS), String(seconds)];
  return runDriver([...command, handle, expected.toString('base64')]);
}

export interface SocketDrive {
  wire: Wire;
  port: number;
  handle: string;
  expected: Buffer;
  seconds: number;
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
  return runDriver(command);
}

async function runDriver(command: readonly string[]): Promise<Driven> {
  const child = start(command, { place: 'driver', stdout: 'pipe' });
  let text = '';
  try {
    child.process.stdout?.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    await new Promise((resolve) => child.process.once('close', resolve));
  } finally {
    await child.stop();
  }
  const line = text.trim().split('\n').at(-1) ?? '';
  if (!line.startsWith('{')) throw new Error(`${command.slice(0, 2).join(' ')} said nothing of use: ${text}`);
  return JSON.parse(line) as Driven;
}
