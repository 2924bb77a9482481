// The network between processes and servers. Each connection preserves order, each direction has a delay
// drawn from the seed, and lines can be cut or slowed.
import type { Scheduler } from './clock.js';
import { Connection } from './connection.js';
import type { Process } from './process.js';
import type { Random } from './random.js';
import type { RedisServer } from './redis.js';

export interface NetworkOptions {
  /** Minimum delay in one direction, in ms. */
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

/** The line between a process and a server, shared by all connections between them. */
export class Line {
  /** Additional delay in ms. */
  extraToServerMs = 0;
  extraToClientMs = 0;
  #isCut = false;
  readonly #waiting = new Set<() => void>();

  /** Stops all data on the line without loss, until `mend`. */
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

  /** Calls `run` when the line is mended. */
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

  /** Returns the open connections of one process, or of all processes. */
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

  /** Decides at random whether a receiver also reads data that has arrived meanwhile, in the same turn. */
  readsOn(): boolean {
    return this.#random.chance(0.5);
  }

  /** Opens a connection. A stopped server's kernel accepts, a dead server refuses, a cut line delays both. */
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

  /** Sends kernel packets, which arrive even if both processes are stopped. */
  #cross(line: Line, extraMs: number, label: string, arrived: () => void): void {
    const arrive = (): void => {
      if (line.isCut) line.whenMended(arrive);
      else arrived();
    };
    this.#scheduler.after(this.delayMs() + extraMs, label, arrive);
  }
}
