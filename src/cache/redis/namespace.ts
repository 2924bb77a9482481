// Which keys of Redis are this deployment's: one with another upstream must share neither entries nor messages.
import { hash } from 'node:crypto';
import { groupOf } from '../coherence/groups.js';
import type { Redis } from 'ioredis';

export interface NamespaceOptions {
  keyPrefix: string;
  /** Address of the upstream. Undefined: nobody with another one can have this prefix. */
  upstream?: string;
  /** Called once when the prefix belongs to another upstream. */
  onForeign?: (found: ForeignPrefix) => void;
  /** Called when the prefix was nobody's: what is under it may be about another upstream. */
  onClaimed?: () => void;
}

export interface ForeignPrefix {
  keyPrefix: string;
  upstream: string;
  /** Address of the upstream to which the prefix belongs. */
  other: string;
  /** The prefix that is used instead. */
  instead: string;
}

/**
 * Key: the marker. ARGV: address of the upstream. Gives the address that holds the prefix, and whether it is new. A
 * deletion is first: a full Redis (noeviction) refuses a script whose first write wants memory.
 */
const CLAIM = `
local holder = redis.call('GET', KEYS[1])
if holder then return {holder, 0} end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1])
return {ARGV[1], 1}`;

/**
 * The first upstream under a prefix keeps it. Others use a prefix made of it and their address, so that their
 * instances share among themselves all the same; they come back to it only when they are started again.
 */
export class RedisNamespace {
  readonly #options: NamespaceOptions;
  readonly #database: number;
  #keyPrefix: string;

  constructor(options: NamespaceOptions, database: number) {
    this.#options = options;
    this.#database = database;
    this.#keyPrefix = options.keyPrefix;
  }

  /** Text before every key. */
  get keyPrefix(): string {
    return this.#keyPrefix;
  }

  /** Text before every channel: Redis keeps keys of its databases apart, but no messages. */
  get channelPrefix(): string {
    return `${this.#keyPrefix}${this.#database}:`;
  }

  /**
   * To be called before anything is read, and from time to time, as Redis may have lost the marker. True: the prefix
   * is another one from now on.
   */
  async claim(redis: Redis): Promise<boolean> {
    const { keyPrefix, upstream, onForeign, onClaimed } = this.#options;
    if (upstream === undefined || this.#keyPrefix !== keyPrefix) return false;
    const [other, isNew] = (await redis.eval(CLAIM, 1, `${keyPrefix}upstream`, upstream)) as [string, number];
    if (isNew === 1) onClaimed?.();
    if (other === upstream) return false;
    this.#keyPrefix = `${keyPrefix}${shortHash(upstream)}:`;
    onForeign?.({ keyPrefix, upstream, other, instead: this.#keyPrefix });
    return true;
  }
}

/** 72 bits: no two addresses have the same by chance. */
export const shortHash = (text: string): string => hash('sha256', text, 'base64url').slice(0, 12);

/** The entry of a key and the state of its group, in one slot. */
export function groupNames(keyPrefix: string, key: string): [entry: string, state: string] {
  const group = groupOf(key);
  return [`${keyPrefix}{${group}}:entry:${key}`, stateName(keyPrefix, group)];
}

/** `bans` is a group of its own. */
export const stateName = (keyPrefix: string, group: number | 'bans'): string =>
  `${keyPrefix}{${group}}:state`;

export const bansName = (keyPrefix: string): string => stateName(keyPrefix, 'bans');
