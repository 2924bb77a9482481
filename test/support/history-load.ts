// Reads and writes handles through several instances, records a history, and pauses processes at random.
import { Agent } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { Random } from '../chaos/random.js';
import { type Asked, type Question, ask } from './ask.js';
import { WRITE_HEADERS, numberIn, numberedBody } from './demo-writes.js';
import type { Operation } from './linearizability.js';
import type { RedisServer } from './redis-server.js';

/** The initial version of every handle. */
export const INITIAL = '0';
const WRITES = 0.08;
const MAX_PAUSE_MS = 10;
const STOP_MS = [20, 500] as const;
const BETWEEN_STOPS_MS = [50, 600] as const;

interface Instance {
  url: string;
  pid: number;
}

export interface Load {
  /** Half receive only conditional writes, the others only unconditional writes, which need no lock. */
  handles: readonly string[];
  instances: readonly Instance[];
  random: Random;
  isOver: () => boolean;
}

export class HistoryRecorder {
  readonly operations: Operation[] = [];
  readonly counts = {
    reads: 0,
    unconditional: 0,
    conditional: 0,
    /** Conditional writes rejected with 412. */
    refused: 0,
    /** Writes with a status other than 200 and 412, or without a response. */
    unknown: 0,
    /** Stale reads, which guarantee nothing. */
    markedStale: 0,
    failed: 0,
  };
  readonly #load: Load;
  #versions = 0;

  constructor(load: Load) {
    this.#load = load;
  }

  /** Sends requests in sequence; after a write, reads from all instances concurrently. */
  async client(name: string): Promise<void> {
    const { random, handles, instances, isOver } = this.#load;
    const agent = new Agent({ keepAlive: true });
    while (!isOver()) {
      const handle = random.pick(handles);
      const isWrite = random.next() < WRITES;
      const isConditional = handles.indexOf(handle) % 2 === 0;
      const seen = isWrite && !isConditional ? undefined : await this.read(name, handle, agent);
      if (isWrite && (seen !== undefined || !isConditional)) {
        await this.#write(name, { handle, agent, ...(seen && { seen }) });
        await Promise.all(instances.map((_instance, at) => this.read(name, handle, agent, at)));
      }
      await pause(random.between(0, MAX_PAUSE_MS));
    }
    agent.destroy();
  }

  /** Reads from one instance; returns undefined if the response has no version. */
  async read(
    client: string,
    handle: string,
    agent?: Agent,
    at = this.#someInstance(),
  ): Promise<Seen | undefined> {
    const begun = this.#begin({ kind: 'read', client, handle, at });
    const answer = await send(begun, { ...(agent && { agent }) });
    if (answer?.status !== 200) {
      this.counts.failed++;
      return undefined;
    }
    if (/detail=(error|timeout|backoff)/.test(String(answer.headers['cache-status']))) {
      this.counts.markedStale++;
      return undefined;
    }
    this.counts.reads++;
    const version = String(numberIn(answer));
    this.operations.push({ ...begun.operation, respondedAt: performance.now(), version });
    return { version, tag: answer.headers.etag ?? '' };
  }

  /** Writes a new version; with `seen`, only if it replaces that version. */
  async #write(
    client: string,
    { handle, agent, seen }: { handle: string; agent: Agent; seen?: Seen },
  ): Promise<void> {
    const number = ++this.#versions;
    const begun = this.#begin({ kind: 'write', client, handle, at: this.#someInstance() });
    const headers = { ...WRITE_HEADERS, ...(seen && { 'If-Match': seen.tag }) };
    const answer = await send(begun, { method: 'PUT', headers, body: numberedBody(number), agent });
    if (answer?.status === 412) {
      this.counts.refused++;
      return;
    }
    const isAcknowledged = answer?.status === 200;
    this.counts[isAcknowledged ? (seen ? 'conditional' : 'unconditional') : 'unknown']++;
    this.operations.push({
      ...begun.operation,
      respondedAt: isAcknowledged ? performance.now() : Infinity,
      version: String(number),
      ...(seen && { replaces: seen.version }),
    });
  }

  #someInstance(): number {
    return Math.floor(this.#load.random.next() * this.#load.instances.length);
  }

  #begin({ at, ...named }: Pick<Operation, 'kind' | 'client' | 'handle'> & { at: number }): Begun {
    const instance = `instance ${at}`;
    const url = this.#load.instances[at]?.url ?? '';
    return { url, operation: { ...named, instance, invokedAt: performance.now() } };
  }
}

/** A version and the ETag of its response. */
interface Seen {
  version: string;
  tag: string;
}

interface Begun {
  url: string;
  operation: Omit<Operation, 'respondedAt' | 'version'>;
}

/** Sends a request; returns undefined after a connection error. */
const send = ({ url, operation }: Begun, question: Question): Promise<Asked | undefined> =>
  ask(url, `/api/handles/${operation.handle}`, question).catch(() => undefined);

/** Repeatedly pauses a chosen process briefly, and returns the number of pauses. */
export async function keepStopping({ random, isOver }: Load, choose: () => Stoppable): Promise<number> {
  let stops = 0;
  while (!isOver()) {
    await pause(random.between(...BETWEEN_STOPS_MS));
    const { stop, resume } = choose();
    stop();
    await pause(random.between(...STOP_MS));
    resume();
    stops++;
  }
  return stops;
}

export interface Stoppable {
  stop: () => void;
  resume: () => void;
}

export const stoppableInstance = ({ pid }: Instance): Stoppable => ({
  stop: () => process.kill(pid, 'SIGSTOP'),
  resume: () => process.kill(pid, 'SIGCONT'),
});

export const stoppableRedis = ({ freeze, thaw }: RedisServer): Stoppable => ({ stop: freeze, resume: thaw });
