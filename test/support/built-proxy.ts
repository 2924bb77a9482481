// Runs the built program as a separate process; needs `npm run build` first.
import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, onTestFinished } from 'vitest';
import { ask } from './ask.js';
import { FIXED_VALUES } from './fixed.js';
import { PATIENCE } from './redis-server.js';

type ChildProcessWithOutput = ChildProcessByStdio<Writable | null, Readable, Readable>;

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface Program {
  child: ChildProcess;
  /** Resolves after the process has exited and all its output is read. */
  exited: Promise<Exit>;
  stdout: () => string;
  stderr: () => string;
}

/** Registers what ends a process. */
type AtEnd = (end: () => Promise<void>) => void;

/** Starts `node` with only these arguments and variables, and kills it when the test ends. */
export const startProgram = (args: string[], env: Record<string, string>, atEnd?: AtEnd): Program =>
  follow(spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] }), atEnd);

/** Collects a child process's output, and kills the process when the test ends. */
export function follow<T extends ChildProcessWithOutput>(
  child: T,
  atEnd: AtEnd = onTestFinished,
): Program & { child: T } {
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => (texts[name] += text));
  }
  const exited = new Promise<Exit>((resolve) => {
    child.once('close', (code, signal) => {
      resolve({ code, signal });
    });
  });
  atEnd(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  return { child, exited, stdout: () => texts.stdout, stderr: () => texts.stderr };
}

/**
 * Starts the program without waiting for it, on free ports unless `env` sets them. `fixed` replaces constants. Without
 * source maps, which cost an eighth of a start; `live/start` has them.
 */
export function startMain(env: Record<string, string>, atEnd?: AtEnd): Program {
  const ports = { HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0' };
  const preload = env[FIXED_VALUES] === undefined ? [] : ['--import', './test/support/preload-fixed.js'];
  return startProgram([...preload, 'dist/main.js'], { ...ports, ...env }, atEnd);
}

export interface BuiltProxy {
  url: string;
  adminUrl: string;
  pid: number;
  /** Sends a signal, by default SIGTERM, and waits for the exit. */
  stop: (signal?: NodeJS.Signals) => Promise<Exit>;
  /** Sends SIGHUP. */
  hangUp: () => void;
  /** Returns the log lines so far. */
  logs: () => Record<string, unknown>[];
  /** Returns stdout and stderr so far. */
  output: () => string;
  exited: Promise<Exit>;
}

/**
 * Timeout for a start, which usually takes half a second, but up to twenty times longer while other tests use
 * all cores.
 */
export const START_TIMEOUT_MS = 120_000;

/** Starts the program and waits until `/readyz` returns 200. */
export async function startBuiltProxy(env: Record<string, string>, atEnd?: AtEnd): Promise<BuiltProxy> {
  const proxy = await startListeningProxy(env, atEnd);
  await expect
    .poll(async () => (await ask(proxy.adminUrl, '/readyz')).status, { timeout: START_TIMEOUT_MS })
    .toBe(200);
  return proxy;
}

/**
 * Starts the program and waits until it listens. Reads its ports from the log, which needs the default level.
 */
export async function startListeningProxy(env: Record<string, string>, atEnd?: AtEnd): Promise<BuiltProxy> {
  const { child, exited, stdout, stderr } = startMain(env, atEnd);
  const logs = (): Record<string, unknown>[] =>
    stdout()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const listening = (): Record<string, unknown> | undefined => {
    if (child.exitCode !== null) throw new Error(`the proxy has ended: ${stdout()}${stderr()}`);
    return logs().find(({ msg }) => msg === 'listening');
  };
  await expect.poll(listening, { timeout: START_TIMEOUT_MS }).toBeDefined();
  const { url, admin: adminUrl } = listening() as { url: string; admin: string };
  return {
    url,
    adminUrl,
    pid: child.pid ?? 0,
    stop: (signal = 'SIGTERM') => {
      child.kill(signal);
      return exited;
    },
    hangUp: () => {
      child.kill('SIGHUP');
    },
    logs,
    output: () => stdout() + stderr(),
    exited,
  };
}

/** Starts the program and waits until it is ready and connected to Redis. */
export async function startConnectedProxy(env: Record<string, string>, atEnd?: AtEnd): Promise<BuiltProxy> {
  const proxy = await startBuiltProxy({ ...PATIENCE, ...env }, atEnd);
  await expect.poll(() => proxy.output(), { timeout: START_TIMEOUT_MS }).toContain('redis connected');
  return proxy;
}

/**
 * Starts the program once for each configuration, for all tests of a file, because a start costs more than most tests.
 * Call it at the top; the returned function starts or finds the program of a configuration.
 */
export function useBuiltProxies(
  start = startBuiltProxy,
): (env: Record<string, string>) => Promise<BuiltProxy> {
  const started = new Map<string, Promise<BuiltProxy>>();
  const ends: (() => Promise<void>)[] = [];
  afterAll(() => Promise.all(ends.map((end) => end())));
  return (env) => {
    const key = JSON.stringify(env);
    const proxy = started.get(key) ?? start(env, (end) => void ends.push(end));
    started.set(key, proxy);
    return proxy;
  };
}
