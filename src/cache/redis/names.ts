// Names of the keys in Redis.
import { groupOf } from '../coherence/groups.js';

/** Braces name the part that decides the slot in a Redis Cluster, so all names of one key live together. */
export function redisName(keyPrefix: string, key: string, part: string): string {
  return `${keyPrefix}{${key.replace(/[{}%]/g, encodeURIComponent)}}:${part}`;
}

/** The entry of a key and the state of its group, in one slot. */
export function groupNames(keyPrefix: string, key: string): [entry: string, state: string] {
  const group = groupOf(key);
  return [`${keyPrefix}{${group}}:entry:${key}`, stateName(keyPrefix, group)];
}

/** `bans` is a group of its own. */
export const stateName = (keyPrefix: string, group: number | 'bans'): string =>
  `${keyPrefix}{${group}}:state`;

export const bansName = (keyPrefix: string): string => stateName(keyPrefix, 'bans');
