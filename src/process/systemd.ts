// Notifies systemd when the program listens and when it stops, and answers its watchdog (sd_notify(3)).
import { execFile } from 'node:child_process';
import type { Logger } from '../observe/logger.js';

interface SystemdDeps {
  logger: Logger;
  /** NOTIFY_SOCKET and WATCHDOG_USEC are set by a unit with Type=notify and WatchdogSec. */
  env: NodeJS.ProcessEnv;
}

/** Each message by systemd's own program: Node.js has no datagram sockets in the file system. */
export function createSystemdNotifier({ logger, env }: SystemdDeps): {
  /** From now on the watchdog is answered as well: a process that hangs does not, and systemd replaces it. */
  listening: () => void;
  stopping: () => void;
} {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: watchdogUsec } = env;
  if (socket === undefined) return { listening: () => undefined, stopping: () => undefined };
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
      if (watchdogUsec === undefined) return;
      const halfMs = Number(watchdogUsec) / 2000;
      setInterval(() => {
        notify('WATCHDOG=1');
      }, halfMs).unref();
    },
    stopping() {
      notify('STOPPING=1');
    },
  };
}
