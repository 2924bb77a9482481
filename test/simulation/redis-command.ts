// A command of the simulated Redis, and the server interface that commands use.
import type { Keyspace } from './redis-keyspace.js';
import type { Reply } from './redis-reply.js';

export interface ServerView {
  keyspace: Keyspace;
  /** Returns the server's wall clock in µs. */
  timeMicros: () => number;
  /** Returns the INFO text of a section, or of all sections. */
  info: (section: string) => string;
  /** Publishes a message. @returns the number of receivers */
  publish: (channel: string, message: string, isSharded: boolean) => number;
  /** Stores a script. @returns its SHA-1 */
  loadScript: (source: string) => string;
}

/**
 * `read`: changes nothing. `write`: changes keys, and is rejected by a replica. `grow`: a write that needs
 * memory, and is also rejected by a full server.
 */
export type Effect = 'read' | 'write' | 'grow';

export interface Command {
  effect: Effect;
  /** Minimum number of arguments after the name. */
  min: number;
  /** Maximum number of arguments after the name. */
  max: number;
  run: (server: ServerView, args: readonly string[]) => Reply;
}

/** Defines a command. `count` is the exact or the minimum number of arguments. */
export function command(effect: Effect, count: number | { atLeast: number }, run: Command['run']): Command {
  return typeof count === 'number'
    ? { effect, min: count, max: count, run }
    : { effect, min: count.atLeast, max: Infinity, run };
}

/** Converts [a, b, c, d] to [[a, b], [c, d]]. */
export function pairs(args: readonly string[]): [string, string][] {
  return Array.from({ length: args.length / 2 }, (_, index) => [args[2 * index]!, args[2 * index + 1]!]);
}
