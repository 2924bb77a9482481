// A simulated and a real Redis in parallel. Both run each command, and their replies are normalised.
import { Redis } from 'ioredis';
import { type RedisServer as RealServer, startRedis } from '../support/redis-server.js';
import { Status } from './redis-reply.js';
import type { RedisServer } from './redis.js';
import { Simulation } from './simulation.js';

export type Comparable = string | number | null | Comparable[];

/** The replies of both servers to one command. */
export interface Replies {
  simulated: Comparable;
  real: Comparable;
}

/** Commands whose replies have no defined order. */
const UNORDERED = new Set(['HKEYS', 'HVALS', 'HGETALL']);

const nobody = { name: 'contract', message: () => undefined };

export class RedisPair {
  readonly real: Redis;
  readonly simulated: RedisServer;
  readonly #server: RealServer;

  private constructor(server: RealServer, simulated: RedisServer) {
    this.#server = server;
    this.real = new Redis(server.port, { protocol: 2 });
    this.simulated = simulated;
  }

  static async start(): Promise<RedisPair> {
    const world = await Simulation.create(1);
    return new RedisPair(await startRedis(), world.redis('simulated'));
  }

  async stop(): Promise<void> {
    this.real.disconnect();
    await this.#server.stop();
  }

  /**
   * Sets the simulated clock, then runs a command on both servers. Strings are byte strings (latin1, one
   * character per byte).
   */
  async run(name: string, ...args: readonly string[]): Promise<Replies> {
    const { host } = this.simulated;
    host.stepWallClock(Date.now() - host.wallMs);
    const real = this.real.callBuffer(name, ...args.map((text) => Buffer.from(text, 'latin1')));
    const simulated = this.simulated.execute(nobody, [name, ...args]);
    return {
      simulated: comparable(name, simulated),
      real: comparable(name, await real.catch((error: unknown) => error as Error)),
    };
  }

  /** Returns the contents of both servers by key: type, value, and rounded expiry. */
  async state(): Promise<{ simulated: Comparable[]; real: Comparable[] }> {
    const keys = new Set([...this.simulated.keyspace.keys(), ...(await this.real.keys('*'))]);
    const state = { simulated: [] as Comparable[], real: [] as Comparable[] };
    for (const key of [...keys].toSorted()) {
      for (const [name, ...args] of [['TYPE'], await this.#reading(key), ['PTTL']]) {
        const replies = await this.run(name!, key, ...args);
        state.simulated.push([key, name!, name === 'PTTL' ? rough(replies.simulated) : replies.simulated]);
        state.real.push([key, name!, name === 'PTTL' ? rough(replies.real) : replies.real]);
      }
    }
    return state;
  }

  async #reading(key: string): Promise<string[]> {
    const byType: Record<string, string[]> = {
      string: ['GET'],
      hash: ['HGETALL'],
      zset: ['ZRANGE', '0', '-1', 'WITHSCORES'],
      list: ['LRANGE', '0', '-1'],
      stream: ['XREVRANGE', '+', '-', 'COUNT', '1000'],
    };
    return byType[await this.real.type(key)] ?? ['EXISTS'];
  }
}

/** TTLs are rounded to ten million ms for comparison, because the two servers differ by milliseconds. */
export const LIFE_STEP_MS = 1e7;
const FAR_MS = 1e11;

export function rough(reply: Comparable): Comparable {
  if (Array.isArray(reply)) return reply.map(rough);
  if (typeof reply !== 'number' || reply <= 1000) return reply;
  return Math.round(Math.min(reply, FAR_MS) / LIFE_STEP_MS) * LIFE_STEP_MS;
}

function comparable(name: string, reply: unknown): Comparable {
  if (reply instanceof Error) return errorOf(name, reply);
  if (Array.isArray(reply)) {
    const items = reply.map((item: unknown) => comparable('', item));
    return UNORDERED.has(name) ? ordered(name, items) : items;
  }
  if (reply instanceof Status) return reply.text;
  return Buffer.isBuffer(reply) ? reply.toString('latin1') : (reply as string | number | null);
}

function ordered(name: string, items: Comparable[]): Comparable[] {
  if (name !== 'HGETALL') return items.toSorted();
  const fields = items.flatMap((field, index) => (index % 2 === 0 ? [[field, items[index + 1]!]] : []));
  return fields.toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1));
}

/**
 * Returns a comparable error. For scripts, it contains only the code, because Redis adds the script and Lua
 * the position to the message.
 */
function errorOf(name: string, { message }: Error): string {
  return name.startsWith('EVAL') ? `error ${message.split(' ')[0] ?? ''}` : `error ${message}`;
}
