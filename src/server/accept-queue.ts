// The accept queue of a listener, as Linux shows it.
import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { type AddressInfo, type Server, isIPv6 } from 'node:net';

/**
 * The connections that the kernel has taken and Node has not; 0 where the system does not tell.
 *
 * Read in the calling turn, and only as far as the listeners, which stand first: microseconds later the listener can
 * be closed.
 */
export function waitingConnections(server: Server): number {
  const { address, port } = server.address() as AddressInfo;
  const hexPort = port.toString(16).toUpperCase().padStart(4, '0');
  // proc(5): local address, remote address, state 0A (LISTEN), tx_queue:rx_queue. The latter is the accept queue.
  const line = new RegExp(`:${hexPort} [0:]+ 0A [0-9A-F]{8}:([0-9A-F]{8})`, 'g');
  const waiting = listenersOf(isIPv6(address) ? '/proc/self/net/tcp6' : '/proc/self/net/tcp').matchAll(line);
  return [...waiting].reduce((sum, [, count = '0']) => sum + parseInt(count, 16), 0);
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
