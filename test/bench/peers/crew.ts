// Starts the servers of one stage, and reports missing programs.
import { Missing } from '../children.js';
import type { Peer } from './peer.js';

export class Crew {
  readonly #started: Peer[] = [];
  readonly #say: (line: string) => void;

  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  /** Starts a server that is stopped at the end of the stage. */
  async start<T extends Peer>(starting: Promise<T>): Promise<T> {
    const peer = await starting;
    this.#started.push(peer);
    return peer;
  }

  /** Starts an optional server; returns undefined if its program is not installed. */
  async startIfInstalled<T extends Peer>(begin: () => Promise<T>): Promise<T | undefined> {
    try {
      return await this.start(begin());
    } catch (error) {
      if (!(error instanceof Missing)) throw error;
      this.#say(`  left out: ${error.message}`);
      return undefined;
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#started.splice(0).map((peer) => peer.stop()));
  }
}
