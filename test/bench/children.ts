// Starts the bench's child processes, pins each to a core, and ensures that all end.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Place, isInstalled, pinned } from './cores.js';

export interface Child {
  pid: number;
  process: ChildProcess;
  /** Stops the process and its descendants. */
  stop: () => Promise<void>;
}

/** Thrown for an optional program that is not installed. */
export class Missing extends Error {
  constructor(program: string) {
    super(`${program} is not installed`);
  }
}

export function assertInstalled(program: string): void {
  if (!isInstalled(program)) throw new Missing(program);
}

const groups = new Set<number>();
const folders = new Set<string>();

/** Kills remaining children and deletes all folders when the bench exits, for any reason. */
process.on('exit', () => {
  for (const pid of groups) killGroup(pid, 'SIGKILL');
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const) {
  process.on(signal, () => process.exit(code));
}

interface StartOptions {
  place: Place;
  env?: Record<string, string>;
  stdout?: 'ignore' | 'pipe';
}

export function start(
  command: readonly string[],
  { place, env = {}, stdout = 'ignore' }: StartOptions,
): Child {
  const [file = '', ...args] = pinned(place, command);
  // Uses a separate process group, so that descendants end together with the child.
  const child = spawn(file, args, {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', stdout, 'pipe'],
    detached: true,
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${file} cannot be started`);
  groups.add(pid);
  const complaints = keepTail(child.stderr);
  const ended = once(child, 'exit');
  let isWanted = true;
  void ended.then(([code]) => {
    if (isWanted && code !== 0) process.stderr.write(`${command.join(' ')} ended: ${complaints()}\n`);
  });
  const stop = async (): Promise<void> => {
    isWanted = false;
    child.kill('SIGTERM');
    await Promise.race([ended, sleep(STOP_MS, undefined, { ref: false })]);
    killGroup(pid, 'SIGKILL');
    groups.delete(pid);
  };
  return { pid, process: child, stop };
}

const STOP_MS = 3000;

function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // All processes of the group have already exited.
  }
}

function keepTail(stream: Readable | null): () => string {
  let tail = '';
  stream?.setEncoding('utf8').on('data', (text: string) => (tail = (tail + text).slice(-2000)));
  return () => tail;
}

/**
 * Creates a folder and deletes it when the bench ends. It is world-readable, because servers started by root
 * switch users.
 */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'handle-bench-'));
  chmodSync(folder, 0o755);
  folders.add(folder);
  return folder;
}

/** Waits until a request for the URL gets a status below 500. */
export async function untilAnswers(url: string, child: Child): Promise<void> {
  await until(`${url} is answered`, child, async () => {
    const answer = await fetch(url, { signal: AbortSignal.timeout(2000) }).catch(() => undefined);
    await answer?.arrayBuffer();
    return answer !== undefined && answer.status < 500;
  });
}

export async function untilListens(port: number, child: Child): Promise<void> {
  await until(`port ${port} is open`, child, async () => {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    return isOpen;
  });
}

const TRIES = 1200;
const TRY_EVERY_MS = 50;

async function until(what: string, child: Child, isSo: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < TRIES; tries++) {
    if (await isSo()) return;
    if (child.process.exitCode !== null) throw new Error(`a server ended before ${what}`);
    await sleep(TRY_EVERY_MS);
  }
  throw new Error(`it did not come to pass that ${what}`);
}
