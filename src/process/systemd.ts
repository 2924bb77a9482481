// Notifies systemd when the program listens and when it stops, and answers its watchdog (sd_notify(3)).
import { execFile } from 'node:child_process';
import type { Logger } from '../observe/logger.js';

interface SystemdDeps {
  logger: Logger;
  /** NOTIFY_SOCKET is set by a unit with Type=notify, the variables of the watchdog by WatchdogSec. */
  env: NodeJS.ProcessEnv;
}

/** Each message by systemd's own program: Node.js has no datagram sockets in the file system. */
export function createSystemdNotifier({ logger, env }: SystemdDeps): {
  /** From now on the watchdog is answered as well: a process that hangs does not, and systemd replaces it. */
  listening: () => void;
  stopping: () => void;
} {
  if (env['NOTIFY_SOCKET'] === undefined) return { listening: () => undefined, stopping: () => undefined };
  let isFailing = false;
  const notify = (message: 'READY=1' | 'STOPPING=1' | 'WATCHDOG=1'): void => {
    execFile('systemd-notify', [message], { env }, (err) => {
      if (err !== null && !isFailing) logger.warn({ err, message }, 'systemd cannot be notified');
      isFailing = err !== null;
    });
  };
  return {
    listening() {
      notify('READY=1');
      const intervalMs = watchdogIntervalMs(env, process.pid);
      if (intervalMs === undefined) return;
      setInterval(() => {
        notify('WATCHDOG=1');
      }, intervalMs).unref();
    },
    stopping() {
      notify('STOPPING=1');
    },
  };
}

/** Above it setInterval takes 1 ms. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Half a period; undefined where the watchdog is off, or that of another process (sd_watchdog_enabled(3)). */
export function watchdogIntervalMs(
  { WATCHDOG_USEC: period = '', WATCHDOG_PID: ofPid }: NodeJS.ProcessEnv,
  pid: number,
): number | undefined {
  if (ofPid !== undefined && ofPid !== String(pid)) return undefined;
  return /^[1-9]\d*$/.test(period) ? Math.min(Number(period) / 2000, MAX_TIMER_MS) : undefined;
}
