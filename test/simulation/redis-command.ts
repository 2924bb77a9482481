// A command of the simulated Redis, and the part of the server that it uses.
import type { Keyspace } from './redis-keyspace.js';
import type { Reply } from './redis-reply.js';

export interface ServerView {
  keyspace: Keyspace;
  /** Wall clock of the server in µs. */
  timeMicros: () => number;
  /** Text of INFO for a section, or for all sections. */
  info: (section: string) => string;
  /** @returns the number of receivers */
  publish: (channel: string, message: string, isSharded: boolean) => number;
  /** @returns the SHA-1 of the script */
  loadScript: (source: string) => string;
}

/**
 * `read`: changes nothing. `write`: changes keys, and is rejected by a replica. `grow`: a write that a server without
 * free memory rejects too.
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

/** `count`: the exact or the minimum number of arguments. */
export function command(effect: Effect, count: number | { atLeast: number }, run: Command['run']): Command {
  return typeof count === 'number'
    ? { effect, min: count, max: count, run }
    : { effect, min: count.atLeast, max: Infinity, run };
}

/** Converts [a, b, c, d] to [[a, b], [c, d]]. */
export function pairs(args: readonly string[]): [string, string][] {
  return Array.from({ length: args.length / 2 }, (_, index) => [args[2 * index]!, args[2 * index + 1]!]);
}
