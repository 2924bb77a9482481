// A server under load.
import type { Child } from '../children.js';
import type { Driven, TargetFile } from '../drive/drive.js';

export interface Peer {
  name: string;
  url: string;
  /** PID of its first process. */
  pid: number;
  /** Targets instead of those of the load. */
  targets?: TargetFile;
  /** A driver instead of the load of HTTP requests. */
  drive?: (seconds: number) => Promise<Driven>;
  stop: () => Promise<void>;
}

export const peerOf = (name: string, url: string, { pid, stop }: Child): Peer => ({ name, url, pid, stop });

/** Name of this product in every table. */
export const OURS = 'this proxy';
