// A server that is driven.
import type { Child } from '../children.js';
import type { TargetFile } from '../drive/drive.js';

export interface Peer {
  name: string;
  url: string;
  /** The first of its processes. */
  pid: number;
  /** Instead of those of the load. */
  targets?: TargetFile;
  stop: () => Promise<void>;
}

export const peerOf = (name: string, url: string, { pid, stop }: Child): Peer => ({ name, url, pid, stop });

/** What this product is called in every table. */
export const OURS = 'this proxy';
