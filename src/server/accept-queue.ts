// The accept queue of a listener, as Linux shows it.
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { type AddressInfo, type Server, isIPv6 } from 'node:net';

/**
 * The connections that the kernel has taken for this listener and Node has not; 0 where the system does not tell. Other
 * listeners may have the same port: of another instance (`server.reusePort`), or at another address.
 *
 * Read in the calling turn, and only as far as the listeners, which stand first: microseconds later the listener can
 * be closed.
 */
export function waitingConnections(server: Server): number {
  const inode = inodeOf(server);
  if (inode === undefined) return 0;
  const { address } = server.address() as AddressInfo;
  const lines = listenersOf(isIPv6(address) ? '/proc/self/net/tcp6' : '/proc/self/net/tcp');
  // proc(5): state 0A (LISTEN), tx_queue:rx_queue, tr:tm->when, retrnsmt, uid, timeout, inode. rx_queue is the accept queue.
  const line = new RegExp(` 0A [0-9A-F]{8}:([0-9A-F]{8}) \\S+ \\S+ +\\d+ +\\d+ ${inode} `);
  return parseInt(line.exec(lines)?.[1] ?? '0', 16);
}

/** Of its socket; Node keeps the descriptor at the handle. Undefined where it has none, or is closed. */
function inodeOf(server: Server): number | undefined {
  const { fd = -1 } = (server as { _handle?: { fd?: number } | null })._handle ?? {};
  return fd < 0 ? undefined : fstatSync(fd).ino;
}

/** Enough for the state of the last line, too little for that of the line before it. */
const LINE_LENGTH = 150;

/** The lines of such a file up to the first connection; nothing on a system without it. */
function listenersOf(path: string): string {
  if (!existsSync(path)) return '';
  const file = openSync(path, 'r');
  const page = Buffer.alloc(4096);
  let lines = '';
  let length: number;
  do {
    length = readSync(file, page);
    lines += page.toString('latin1', 0, length);
  } while (length > 0 && lines.slice(-LINE_LENGTH).includes(' 0A '));
  closeSync(file);
  return lines;
}
