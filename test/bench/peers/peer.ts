// Defines a server under load, and names this proxy in the tables.
import type { Child } from '../children.js';
import type { Driven, TargetFile } from '../drive/drive.js';

export interface Peer {
  name: string;
  url: string;
  /** PID of the server's first process. */
  pid: number;
  /** Targets that replace those of the load. */
  targets?: TargetFile;
  /** Driver that replaces the HTTP load. */
  drive?: (seconds: number) => Promise<Driven>;
  stop: () => Promise<void>;
}

export const peerOf = (name: string, url: string, { pid, stop }: Child): Peer => ({ name, url, pid, stop });

/** This proxy's name in every table. */
export const OURS = 'this proxy';
export const OURS_AT_WARN = `${OURS} at LOG_LEVEL=warn`;
