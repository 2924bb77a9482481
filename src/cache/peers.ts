// The other processes of this machine, as the cache sees them.
import { randomUUID } from 'node:crypto';
import type { Entry } from './entry.js';
import type { MemoryStore } from './memory-store.js';
import { type KeyMessage, sweepLine, writeMessage } from './message.js';
import type { Fence, Looked, Store } from './store.js';
import type { Sweep } from './sweeps.js';

/** Tells all other workers a line; done when every one of them has obeyed it. */
export type TellPeers = (line: string) => Promise<void>;

export interface PeeredMemoryOptions {
  memory: MemoryStore;
  tell: TellPeers;
  /** As for the memory store itself (ms). */
  fenceLifeMs: number;
  now: () => number;
}

/** A memory tier whose forgettings and fences hold in every worker before they are done here. */
export class PeeredMemory implements Store<number> {
  readonly #options: PeeredMemoryOptions;

  constructor(options: PeeredMemoryOptions) {
    this.#options = options;
  }

  get(key: string): Looked<number> {
    return this.#options.memory.get(key);
  }

  peek(key: string): Entry | undefined {
    return this.#options.memory.peek(key);
  }

  isCurrent(key: string, ticket: number): boolean {
    return this.#options.memory.isCurrent(key, ticket);
  }

  accepts(key: string, ticket: number): boolean {
    return this.#options.memory.accepts(key, ticket);
  }

  set(key: string, entry: Entry, ticket: number): boolean {
    return this.#options.memory.set(key, entry, ticket);
  }

  async replace(key: string, entry: Entry, ticket: number): Promise<boolean> {
    const isKept = this.#options.memory.replace(key, entry, ticket);
    await this.#tell({ kind: 'forget', key });
    return isKept;
  }

  async forget(key: string): Promise<void> {
    this.#options.memory.forget(key);
    await this.#tell({ kind: 'forget', key });
  }

  async soften(key: string): Promise<void> {
    this.#options.memory.soften(key);
    await this.#tell({ kind: 'soften', key });
  }

  /** `number`: what Redis calls the sweep, so that the other workers know it before they ask Redis again. */
  async sweep(sweep: Sweep, number = 0): Promise<void> {
    this.#options.memory.sweep(sweep);
    const [before, after] = sweepLine(sweep);
    await this.#options.tell(`${before}${number}${after}`);
  }

  /** What is told is waited for each time. */
  heard(): void {
    return undefined;
  }

  async fence(key: string): Promise<Fence> {
    const { memory, fenceLifeMs: lifeMs, now } = this.#options;
    const writer = randomUUID();
    const until = now() + lifeMs;
    memory.raise(key, writer, until);
    await this.#tell({ kind: 'raise', key, writer, lifeMs });
    return {
      changed: async () => {
        memory.lower(key, writer);
        memory.forget(key);
        await this.#tell({ kind: 'changed', key, writer });
      },
      unchanged: async () => {
        memory.lower(key, writer);
        await this.#tell({ kind: 'unchanged', key, writer });
      },
      unknown: async () => {
        memory.soften(key);
        await this.#tell({ kind: 'unknown', key, writer, lifeMs: Math.max(0, until - now()) });
      },
    };
  }

  #tell(message: KeyMessage): Promise<void> {
    return this.#options.tell(writeMessage(message));
  }
}
