// Starts a redis-server on a free port, which tests can freeze, kill and restart.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { describe } from 'vitest';
import { freePort } from './free-port.js';
import { skipWithout } from './programs.js';

export interface RedisServer {
  url: string;
  port: number;
  /** Sends SIGSTOP, so that connections stay open without replies. */
  freeze: () => void;
  thaw: () => void;
  /** Stops the server, which loses its data. */
  stop: () => Promise<void>;
  /** Restarts the server, empty, on the same port. */
  restart: () => Promise<void>;
}

/**
 * Command timeout for tests. On a busy machine, commands may exceed the default of 50 ms, and Redis then
 * counts as lost; only tests that freeze or slow down Redis cover this.
 */
export const PATIENT_MS = 2000;
export const PATIENCE = { REDIS_COMMAND_TIMEOUT: `${PATIENT_MS}ms` };

/** Command timeout for tests that freeze Redis and wait until the proxy notices. */
export const LITTLE_PATIENCE = { REDIS_COMMAND_TIMEOUT: '500ms' };

const isInstalled = spawnSync('redis-server', ['--version']).status === 0;

/** Defines a `describe` that needs redis-server, see `skipWithout`. */
export function describeWithRedis(name: string, suite: () => void): void {
  if (isInstalled) describe(name, suite);
  else
    skipWithout('redis-server', name, () => {
      describe.skip(name, suite);
    });
}

/** Number of ports to try, because another run of the tests may take a free port before Redis does. */
const TRIES = 5;

async function launchOnFreePort(
  extra: string[],
  tries = TRIES,
): Promise<{ port: number; child: ChildProcess }> {
  const port = await freePort();
  try {
    return { port, child: await launch(port, extra) };
  } catch (error) {
    if (tries === 1) throw error;
    return launchOnFreePort(extra, tries - 1);
  }
}

export async function startRedis(extra: string[] = [], onPort?: number): Promise<RedisServer> {
  const launched =
    onPort === undefined
      ? await launchOnFreePort(extra)
      : { port: onPort, child: await launch(onPort, extra) };
  const { port } = launched;
  let { child } = launched;
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    freeze: () => child.kill('SIGSTOP'),
    thaw: () => child.kill('SIGCONT'),
    stop,
    restart: async () => {
      await stop();
      child = await launch(port, extra);
    },
  };
}

/**
 * Starts redis-server and waits until it says that it is ready. A connection would prove less: it may reach the
 * Redis of another run on the same port. @throws Error when it ends instead
 */
async function launch(port: number, extra: string[]): Promise<ChildProcess> {
  const settings = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--appendonly',
    'no',
    // Without this option, a replica would leave the received copy as a file in the working folder.
    '--repl-diskless-load',
    'swapdb',
    ...extra,
  ];
  const child = spawn('redis-server', settings, { stdio: ['ignore', 'pipe', 'ignore'] });
  return new Promise((resolve, reject) => {
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (said.includes(READY)) return;
      said += text;
      if (said.includes(READY)) resolve(child);
    });
    child.once('exit', () => {
      reject(new Error(`redis-server does not start on ${port}: ${said}`));
    });
  });
}

/** Line of the log of redis-server. */
const READY = 'Ready to accept connections';
