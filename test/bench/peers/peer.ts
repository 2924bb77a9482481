// A server that is driven.
import type { Child } from '../children.js';
import type { Driven, TargetFile } from '../drive/drive.js';

export interface Peer {
  name: string;
  url: string;
  /** The first of its processes. */
  pid: number;
  /** Instead of those of the load. */
  targets?: TargetFile;
  /** Instead of a load of HTTP requests. */
  drive?: (seconds: number) => Promise<Driven>;
  stop: () => Promise<void>;
}

export const peerOf = (name: string, url: string, { pid, stop }: Child): Peer => ({ name, url, pid, stop });

/** What this product is called in every table. */
export const OURS = 'this proxy';
