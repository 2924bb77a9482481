// A command of the simulated Redis, and the part of the server that it uses.
import type { Keyspace } from './redis-keyspace.js';
import type { Reply } from './redis-reply.js';

export interface ServerView {
  keyspace: Keyspace;
  /** Wall clock of the server in µs. */
  timeMicros: () => number;
  /** Text of INFO for a section, or for all. */
  info: (section: string) => string;
  /** Returns the number of receivers. */
  publish: (channel: string, message: string, isSharded: boolean) => number;
  /** Gives the SHA-1 of the script. */
  loadScript: (source: string) => string;
}

/**
 * `read`: changes nothing. `write`: changes keys, and is refused by a replica. `grow`: a write that a server without
 * memory refuses too.
 */
export type Effect = 'read' | 'write' | 'grow';

export interface Command {
  effect: Effect;
  /** Fewest arguments after the name. */
  min: number;
  /** Most arguments after the name. */
  max: number;
  run: (server: ServerView, args: readonly string[]) => Reply;
}

/** The exact or the minimum number of arguments. */
export function command(effect: Effect, count: number | { atLeast: number }, run: Command['run']): Command {
  return typeof count === 'number'
    ? { effect, min: count, max: count, run }
    : { effect, min: count.atLeast, max: Infinity, run };
}

/** [a, b, c, d] as [[a, b], [c, d]]. */
export function pairs(args: readonly string[]): [string, string][] {
  return Array.from({ length: args.length / 2 }, (_, index) => [args[2 * index]!, args[2 * index + 1]!]);
}
