// Notifies systemd of startup and shutdown, and feeds its watchdog (sd_notify(3)).
import { execFile } from 'node:child_process';
import type { Logger } from '../observe/logger.js';

/** Runs `systemd-notify`, because Node.js has no Unix datagram sockets, with the variables of systemd. */
export function createSystemdNotifier(
  logger: Logger,
  env: NodeJS.ProcessEnv,
): {
  /** Reports startup, and feeds the watchdog from then on, or systemd would restart the process. */
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
      setInterval(() => notify('WATCHDOG=1'), intervalMs).unref();
    },
    stopping: () => notify('STOPPING=1'),
  };
}

/** Maximum timer interval; setInterval would replace a longer interval with 1 ms. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Returns half of the watchdog period (ms); undefined without one for this process (sd_watchdog_enabled(3)). */
export function watchdogIntervalMs(
  { WATCHDOG_USEC: period = '', WATCHDOG_PID: ofPid }: NodeJS.ProcessEnv,
  pid: number,
): number | undefined {
  if (ofPid !== undefined && ofPid !== String(pid)) return undefined;
  return /^[1-9]\d*$/.test(period) ? Math.min(Number(period) / 2000, MAX_TIMER_MS) : undefined;
}
