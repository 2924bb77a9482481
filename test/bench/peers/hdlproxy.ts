// A running HDLProxy at the `--hdlproxy` URL, whose Handle server contains the handles of the benchmark.
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { Missing } from '../children.js';
import type { Peer } from './peer.js';

export const HDLPROXY = 'HDLProxy';

/** Connects to the running HDLProxy. @throws Missing without a URL */
export async function startHdlProxy(url: string | undefined): Promise<Peer> {
  if (url === undefined) throw new Missing(`${HDLPROXY} (--hdlproxy URL)`);
  const { origin, port } = new URL(url);
  await fetch(origin);
  return { name: HDLPROXY, url: origin, pid: listenerOf(Number(port || 80)), stop: () => Promise.resolve() };
}

/** Returns the process on this machine that listens on a port. @throws Error if none does */
function listenerOf(port: number): number {
  const inodes = ['tcp', 'tcp6'].flatMap((file) => listeningInodes(`/proc/net/${file}`, port));
  const sockets = inodes.map((inode) => `socket:[${inode}]`);
  const pid = readdirSync('/proc').find((name) => /^\d+$/.test(name) && hasOpen(name, sockets));
  if (pid === undefined) throw new Error(`--hdlproxy: no process of this machine listens on port ${port}`);
  return Number(pid);
}

/** Parses /proc/net/tcp (proc(5)): local address, remote address, state 0A (LISTEN), five fields, inode. */
const listeningInodes = (file: string, port: number): string[] => {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const line = new RegExp(`:${hex} \\S+ 0A \\S+ \\S+ \\S+ +\\d+ +\\d+ (\\d+) `, 'g');
  return [...readFileSync(file, 'latin1').matchAll(line)].map(([, inode = '']) => inode);
};

function hasOpen(pid: string, sockets: readonly string[]): boolean {
  try {
    const folder = `/proc/${pid}/fd`;
    return readdirSync(folder).some((fd) => sockets.includes(readlinkSync(`${folder}/${fd}`)));
  } catch {
    // The process has exited, or the descriptor has been closed.
    return false;
  }
}
