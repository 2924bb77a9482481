// A redis-server for tests, on a free port, that can be frozen, killed and restarted.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, test } from 'vitest';
import { freePort } from './free-port.js';

export interface RedisServer {
  url: string;
  port: number;
  /** Sends SIGSTOP: connections stay open, nothing is answered. */
  freeze: () => void;
  thaw: () => void;
  /** Ends the server; its data is lost. */
  stop: () => Promise<void>;
  /** Starts it again, empty, on the same port. */
  restart: () => Promise<void>;
}

/**
 * On a busy machine a command may take longer than the default time limit of 50 ms, and Redis then counts as
 * lost. Only tests that freeze or slow Redis down cover that; all others wait.
 */
export const PATIENT_MS = 2000;
export const PATIENCE = { REDIS_COMMAND_TIMEOUT: `${PATIENT_MS}ms` };

/** For tests that freeze Redis and wait until the proxy notices. */
export const LITTLE_PATIENCE = { REDIS_COMMAND_TIMEOUT: '500ms' };

const isInstalled = spawnSync('redis-server', ['--version']).status === 0;

/** A `describe` that needs redis-server: skipped and listed without one; with `CI` set it fails. */
export function describeWithRedis(name: string, suite: () => void): void {
  if (isInstalled) {
    describe(name, suite);
  } else if (process.env['CI'] !== undefined) {
    test(name, () => {
      throw new Error('redis-server is not installed: CI has to run the Redis tests');
    });
  } else {
    process.stderr.write(`\n!!! NOT RUN, redis-server is not installed: ${name}\n`);
    describe.skip(name, suite);
  }
}

export async function startRedis(extra: string[] = [], onPort?: number): Promise<RedisServer> {
  const port = onPort ?? (await freePort());
  let child = await launch(port, extra);
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
    // A replica would otherwise leave the copy that it received as a file in the working folder.
    '--repl-diskless-load',
    'swapdb',
    ...extra,
  ];
  const child = spawn('redis-server', settings, { stdio: 'ignore' });
  for (let tries = 0; !(await answers(port)); tries++) {
    if (tries > 200) throw new Error(`redis-server does not listen on ${port}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return child;
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
