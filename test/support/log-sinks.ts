// Starts the built program with a stdout that fails or that nobody reads.
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, constants, existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { ask } from './ask.js';
import { type Exit, ROOT, START_TIMEOUT_MS } from './built-proxy.js';
import { freePort } from './free-port.js';
import { newFolder } from './folder.js';

type Stdout = number | 'pipe';

interface Sink {
  /** Opens the stdout of the program. `opened` closes the test's copies once the program has its own. */
  open: () => { stdout: Stdout; opened?: () => void };
}

function openFifo({ isRead }: { isRead: boolean }): ReturnType<Sink['open']> {
  const path = join(newFolder(), 'fifo');
  expect(spawnSync('mkfifo', [path]).status).toBe(0);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const stdout = openSync(path, constants.O_WRONLY);
  if (isRead)
    onTestFinished(() => {
      closeSync(reader);
    });
  return {
    stdout,
    opened() {
      closeSync(stdout);
      if (!isRead) closeSync(reader);
    },
  };
}

/** A pipe of Node.js is a socket. */
export const SINKS = {
  'a full disk (/dev/full)': { open: () => ({ stdout: openSync('/dev/full', 'w') }) },
  'a pipe that nobody reads': { open: () => openFifo({ isRead: true }) },
  'a pipe whose reader has gone': { open: () => openFifo({ isRead: false }) },
  'a socket that nobody reads': { open: () => ({ stdout: 'pipe' }) },
} as const satisfies Record<string, Sink>;

export interface LoggingProxy {
  url: string;
  adminUrl: string;
  kill: (signal: NodeJS.Signals) => void;
  exited: Promise<Exit>;
}

/** Ports are given, because the log does not tell them. */
async function addressesOf(): Promise<{ env: Record<string, string>; url: string; adminUrl: string }> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const env = { HOST: '127.0.0.1', PORT: String(port), ADMIN_PORT: String(adminPort) };
  return { env, url: `http://127.0.0.1:${port}`, adminUrl: `http://127.0.0.1:${adminPort}` };
}

async function untilReady(adminUrl: string): Promise<void> {
  const status = () =>
    ask(adminUrl, '/readyz').then(
      (answer) => answer.status,
      () => 'not yet',
    );
  await expect.poll(status, { timeout: START_TIMEOUT_MS }).toBe(200);
}

/** Starts the program with this stdout, and waits until it is ready. */
export async function startWithStdout({ open }: Sink, env: Record<string, string>): Promise<LoggingProxy> {
  const { env: ports, ...urls } = await addressesOf();
  const { stdout, opened } = open();
  const child = spawn(process.execPath, ['dist/main.js'], {
    cwd: ROOT,
    env: { ...ports, ...env },
    stdio: ['ignore', stdout, 'ignore'],
  });
  opened?.();
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => {
      resolve({ code, signal });
    });
  });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  await untilReady(urls.adminUrl);
  return { ...urls, exited, kill: (signal) => child.kill(signal) };
}

export interface TerminalProxy extends Omit<LoggingProxy, 'exited'> {
  closeTerminal: () => void;
  isRunning: () => boolean;
}

/** Starts the program on a terminal that nobody reads, with another stdin, and waits until it is ready. */
export async function startOnUnreadTerminal(env: Record<string, string>): Promise<TerminalProxy> {
  const { env: ports, ...urls } = await addressesOf();
  const pidFile = join(newFolder(), 'pid');
  const command = `echo $$ > ${pidFile}; exec ${process.execPath} dist/main.js < /dev/null`;
  const terminal = spawn('script', ['-qefc', command, '/dev/null'], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'] ?? '', SHELL: '/bin/sh', ...ports, ...env },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const pid = () => Number(readFileSync(pidFile, 'utf8'));
  const isRunning = (): boolean => {
    const path = `/proc/${pid()}/stat`;
    return existsSync(path) && !/\) [ZX]/.test(readFileSync(path, 'utf8'));
  };
  const kill = (signal: NodeJS.Signals): void => {
    if (isRunning()) process.kill(pid(), signal);
  };
  onTestFinished(() => {
    kill('SIGKILL');
    terminal.kill('SIGKILL');
  });
  await untilReady(urls.adminUrl);
  return { ...urls, kill, isRunning, closeTerminal: () => terminal.kill('SIGKILL') };
}
