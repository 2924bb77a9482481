// The network between processes and servers: each connection preserves order, each direction has a delay
// drawn from the seed, and lines can be cut or slowed down.
import type { Scheduler } from './clock.js';
import { Connection } from './connection.js';
import type { Process } from './process.js';
import type { Random } from './random.js';
import type { RedisServer } from './redis.js';

export interface NetworkOptions {
  /** Delay of one direction, ms. */
  minDelayMs?: number;
  maxDelayMs?: number;
  /** Probability of a longer delay, up to `slowDelayMs`. */
  slowChance?: number;
  slowDelayMs?: number;
}

const DEFAULTS: Required<NetworkOptions> = {
  minDelayMs: 0.05,
  maxDelayMs: 1,
  slowChance: 0.01,
  slowDelayMs: 20,
};

/** The line between a process and a server, shared by all their connections. */
export class Line {
  /** Added to each delay, ms. */
  extraToServerMs = 0;
  extraToClientMs = 0;
  #isCut = false;
  readonly #waiting = new Set<() => void>();

  /** Nothing arrives and nothing is lost: all of it continues when the line is mended. */
  cut(): void {
    this.#isCut = true;
  }

  mend(): void {
    this.#isCut = false;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const run of waiting) run();
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  /** Runs when the line is mended. */
  whenMended(run: () => void): void {
    this.#waiting.add(run);
  }
}

export class Network {
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #options: Required<NetworkOptions>;
  readonly #lines = new Map<string, Line>();
  readonly #connections = new Set<Connection>();

  constructor(scheduler: Scheduler, random: Random, options: NetworkOptions = {}) {
    this.#scheduler = scheduler;
    this.#random = random.stream('network');
    this.#options = { ...DEFAULTS, ...options };
  }

  line(client: Process, server: RedisServer): Line {
    const name = `${client.name}-${server.host.name}`;
    const line = this.#lines.get(name) ?? new Line();
    this.#lines.set(name, line);
    return line;
  }

  /** The open connections, of one process or of all. */
  connections(client?: Process): Connection[] {
    return [...this.#connections].filter(
      (connection) => client === undefined || connection.client === client,
    );
  }

  delayMs(): number {
    const { minDelayMs, maxDelayMs, slowChance, slowDelayMs } = this.#options;
    const isSlow = this.#random.chance(slowChance);
    return this.#random.between(minDelayMs, isSlow ? slowDelayMs : maxDelayMs);
  }

  /** Whether data that has also arrived is read in the same turn. */
  readsOn(): boolean {
    return this.#random.chance(0.5);
  }

  /**
   * The kernel of a stopped server accepts; a server that is down refuses. Over a cut line nothing
   * arrives until it is mended.
   */
  connect(client: Process, server: RedisServer): Promise<Connection> {
    const line = this.line(client, server);
    return new Promise((resolve, reject) => {
      this.#cross(line, line.extraToServerMs, `${server.host.name} asked by ${client.name}`, () => {
        const connection = server.host.isAlive ? this.#accept(client, server) : undefined;
        this.#cross(line, line.extraToClientMs, `${client.name} answered by ${server.host.name}`, () => {
          client.post(0, 'connects', () => {
            if (connection === undefined) reject(new Error('connect ECONNREFUSED'));
            else resolve(connection);
          });
        });
      });
    });
  }

  #accept(client: Process, server: RedisServer): Connection {
    const connection = new Connection(this, client, server, () => this.#connections.delete(connection));
    this.#connections.add(connection);
    return connection;
  }

  /** Work of the kernels on both sides, which runs even if the processes are stopped. */
  #cross(line: Line, extraMs: number, label: string, arrived: () => void): void {
    const arrive = (): void => {
      if (line.isCut) line.whenMended(arrive);
      else arrived();
    };
    this.#scheduler.after(this.delayMs() + extraMs, label, arrive);
  }
}
