// Redis key and channel names; a prefix belongs to one upstream and one form of its keys: upstreams share no entries.
import { hash } from 'node:crypto';
import { hostname } from 'node:os';
import slotOf from 'cluster-key-slot';
import type { Redis } from 'ioredis';
import { isLoopback } from '../../config/addresses.js';
import type { Config } from '../../config/schema.js';
import { type ServerConfig, describeUpstream } from '../../config/upstream-servers.js';
import { GROUPS, type Group, groupOf } from '../coherence/groups.js';
import { type RedisMaster, databaseNumber } from './connections.js';

export interface NamespaceOptions {
  keyPrefix: string;
  /** Identifier of the upstream (`describeUpstream`); undefined if the prefix already identifies the upstream. */
  upstream?: string | undefined;
  /** Called once if the prefix belongs to a different upstream. */
  onForeign?: (found: {
    keyPrefix: string;
    upstream: string;
    /** Identifier of the upstream that owns the prefix. */
    other: string;
    instead: string;
  }) => void;
}

/**
 * Claims a prefix. KEYS: the owner marker. ARGV: upstream. Returns the owner. The first write is a deletion, because a
 * full Redis (noeviction) refuses a script whose first write needs memory.
 */
const CLAIM = `
local holder = redis.call('GET', KEYS[1])
if holder then return holder end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]`;

/**
 * Returns the prefix: the configured one for the upstream that claims it first; others append a hash of their id.
 * `wasOwner`: whether this instance has owned it until now.
 */
export async function claimPrefix(
  redis: Redis,
  options: NamespaceOptions,
  wasOwner: boolean,
): Promise<string> {
  const { keyPrefix, upstream, onForeign } = options;
  if (upstream === undefined) return keyPrefix;
  const marker = `${keyPrefix}upstream`;
  // An unowned prefix may contain entries of a different upstream. A new state of the bans has a floor above them; a ban
  // would also delete the records in memory, which are of this upstream.
  if (!wasOwner && (await redis.get(marker)) === null) await redis.del(stateName(keyPrefix, 'bans'));
  const other = (await redis.eval(CLAIM, 1, marker, upstream)) as string;
  if (other === upstream) return keyPrefix;
  const instead = `${keyPrefix}${shortHash(upstream)}:`;
  onForeign?.({ keyPrefix, upstream, other, instead });
  return instead;
}

/** Returns the configured prefix, else one of upstream and database, so that different upstreams share nothing. */
export function keyPrefixOf(
  servers: readonly ServerConfig[],
  { redis, upstream: { caseSensitive } }: Config,
  machine = hostname(),
): string {
  if (redis.keyPrefix !== undefined) return redis.keyPrefix;
  const upstream = describeUpstream(servers, caseSensitive);
  // A loopback address names a different server on each machine.
  const isLocal = servers.some(({ url }) => isLoopback(new URL(url).hostname));
  return `hrp:${shortHash(isLocal ? `${upstream} of ${machine}` : upstream)}:${databaseNumber(redis)}:`;
}

/** Returns 72 bits of a hash, enough to make collisions improbable. */
const shortHash = (text: string): string => hash('sha256', text, 'base64url').slice(0, 12);

/** Returns the Redis names of an entry and its group state, which share a slot. */
export function groupNames(
  keyPrefix: string,
  key: string,
  group = groupOf(key),
): [entry: string, state: string] {
  return [`${keyPrefix}{${group}}${ENTRY}${key}`, stateName(keyPrefix, group)];
}

const ENTRY = ':entry:';

export const entryPattern = (keyPrefix: string): string =>
  `${keyPrefix.replace(/[\\*?[\]]/g, '\\$&')}{*}${ENTRY}*`;

export const keyOfEntry = (keyPrefix: string, name: string): string =>
  name.slice(name.indexOf(ENTRY, keyPrefix.length) + ENTRY.length);

/** Returns the name of a group state; `bans` is a separate group. */
export const stateName = (keyPrefix: string, group: Group): string => `${keyPrefix}{${group}}:state`;

export const GROUP_NAMES: readonly Group[] = ['bans', ...Array.from({ length: GROUPS }, (_, group) => group)];

export type Channels = ReturnType<typeof createChannels>;

export function createChannels(prefix: string, isCluster: boolean) {
  /** Returns the channel for acknowledgements to a member. */
  const ofMember = (member: string): string => `${prefix}{acks:${member}}`;
  const ofGroup = (group: Group): string => prefix + (isCluster ? `{${group}}` : 'messages');
  return {
    prefix,
    /** The publishing command; sharded in a cluster, because the cluster bus may lose messages. */
    publish: isCluster ? 'SPUBLISH' : 'PUBLISH',
    ofGroup,
    ofMember,
    /** Returns the channels that a member subscribes to on a master. */
    at: (master: RedisMaster, id: string): string[] =>
      [...new Set(GROUP_NAMES.map(ofGroup)), ofMember(id)].filter((name) => master.holds(slotOf(name))),
  };
}
