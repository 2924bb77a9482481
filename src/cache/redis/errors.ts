// Classifies Redis errors, suggests remedies to the operator, and reports each reason at most once a minute.

const MAX_REASON_LENGTH = 200;

/**
 * Whether Redis works but refuses this command: it is full, cannot save, lacks replicas, the key type is wrong, or the
 * user lacks a right.
 */
export const concernsOneCommand = (error: unknown): boolean =>
  error instanceof Error && /\b(OOM|WRONGTYPE|MISCONF|NOREPLICAS|NOPERM)\b/.test(redisReason(error));

/** Whether Redis itself replied with an error, for example NOPERM or CLUSTERDOWN. */
export const isErrorReply = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'ReplyError';

/** Returns the error of a server that replies, but is unusable: it is reported as if Redis had replied with it. */
const unusable = (reason: string): Error => Object.assign(new Error(reason), { name: 'ReplyError' });

export const timeoutError = (): Error => new Error('Redis did not answer in time');

const MAX_REASONS = 10;
const REPEAT_MS = 60_000;

/** Called with a reason, and how often it has occurred since it was last reported. */
export type OnTrouble = (reason: string, count: number) => void;

/**
 * Reports each reason for a failure once, and then at most once a minute with a count: Redis may refuse a command
 * twice a second for days, or be lost and return repeatedly.
 */
export function createTroubleReport(
  onTrouble: OnTrouble | undefined,
  monotonic: () => number,
): (error: unknown) => void {
  /** By reason, the time of its last report, and its occurrences since. */
  const reasons = new Map<string, { reportedAt: number; count: number }>();
  return function reportTrouble(error) {
    const reason = redisReason(error);
    const at = monotonic();
    for (const [old, { reportedAt }] of reasons)
      if (old !== reason && at - reportedAt >= REPEAT_MS) reasons.delete(old);
    const known = reasons.get(reason);
    if (known === undefined && reasons.size >= MAX_REASONS) return;
    const { reportedAt, count } = known ?? { reportedAt: -Infinity, count: 0 };
    const isDue = at - reportedAt >= REPEAT_MS;
    reasons.set(reason, isDue ? { reportedAt: at, count: 0 } : { reportedAt, count: count + 1 });
    if (isDue) onTrouble?.(reason, count + 1);
  };
}

/**
 * Returns the error message without command arguments: a Redis that does not support AUTH quotes the
 * password.
 */
export function redisReason(error: unknown): string {
  const { message, code, lastNodeError } = error as Error & { code?: string; lastNodeError?: unknown };
  if (lastNodeError instanceof Error) return redisReason(lastNodeError);
  // Node.js provides only a code (AggregateError) for a host with several addresses.
  const text = message === '' ? (code ?? 'unknown') : message;
  const [, first = ''] = /^Unknown RESP type \d+ "(.)/s.exec(text) ?? [];
  if (first === 'H') return 'a web server responds there, not Redis';
  if (first !== '') return 'another service responds there, not Redis';
  return (
    text
      .replace(/[,.]? with args beginning with.*$/s, '')
      // The place in a script: last, or first in Redis 6.
      .replace(/ script: (?:[0-9a-f]{40}, )?on @user_script:\d+\.$/, '')
      .replace(/^ERR Error running script \(call to f_[0-9a-f]{40}\): (?:@user_script: ?\d+: )+-?/, '')
      .replace(/^(?:ERR )?(?=The user executing the script can't |ACL failure in script: )/, 'NOPERM ')
      // Redis before version 5.
      .replace(/^(?=Write commands not allowed after non deterministic )/, 'UNSUITABLE ')
      .replace(/Retrying from scratch after \d+ms\. /, '')
      .replace(/^MOVED \d+ /, 'MOVED to ')
      .slice(0, MAX_REASON_LENGTH)
  );
}

export const EVICTION_REMEDY = 'set maxmemory-policy to noeviction or volatile-lru';

/**
 * Returns a policy that may evict locks and coordination keys: without the member list each write waits for the lease
 * time, and without its group state no entry is usable. None of them has a TTL, so the volatile policies keep them.
 * `info`: the reply to INFO.
 */
export function riskyEviction(info: string): string | undefined {
  const policy = infoField(info, 'maxmemory_policy');
  return infoField(info, 'maxmemory') !== '0' && policy?.startsWith('allkeys-') ? policy : undefined;
}

export const infoField = (info: string, name: string): string | undefined =>
  info
    .split(/\r?\n/)
    .find((line) => line.startsWith(`${name}:`))
    ?.slice(name.length + 1);

/** Returns the version, with the name of a server that resembles Redis: its `redis_version` is that of the Redis that it resembles. */
export function serverVersion(info: string): string | undefined {
  const [, name, version] = /^(?!redis|gcc)(\w+)_version:([^\r\n]+)/m.exec(info) ?? [];
  return name === undefined ? infoField(info, 'redis_version') : `${name} ${version ?? ''}`;
}

/** Minimum Redis version with sharded channels (SPUBLISH). */
const MIN_CLUSTER_VERSION = 7;

/**
 * Returns the id of the server run. `info`: the reply to INFO. @throws Error when the server is a replica, whose writes do
 * not reach its master, is too old for a cluster, or does not name its run, so that a restart with old data goes unnoticed
 */
export function readRunId(info: string, isCluster: boolean): string {
  // A former master accepts connections and PING: each write would be another loss of Redis.
  if (infoField(info, 'role') === 'slave') throw unusable('READONLY it is a replica');
  if (isCluster && Number.parseInt(infoField(info, 'redis_version') ?? '') < MIN_CLUSTER_VERSION)
    throw unusable(
      `UNSUITABLE a Redis Cluster needs version ${MIN_CLUSTER_VERSION} or newer, for sharded channels`,
    );
  const run = infoField(info, 'run_id');
  if (run === undefined || (isCluster && infoField(info, 'master_replid') === undefined))
    throw unusable('UNSUITABLE its INFO has no run_id or master_replid');
  return run;
}

const NODE_OF_CLUSTER = 'name the nodes of the cluster in redis.cluster, instead of one of them in {key}';

/** Remedies by error code, the first word of an error reply. */
const REMEDIES: Readonly<Record<string, string>> = {
  NOAUTH: 'check the user and the password in {key}',
  WRONGPASS: 'check the user and the password in {key}',
  NOPERM:
    'give its user +@read +@write +eval +evalsha +publish +subscribe +@connection +info +time{of cluster} for the keys and channels of redis.keyPrefix (by default hrp:*)',
  UNSUITABLE: 'use Redis 7 or newer, Valkey or Redict',
  READONLY: 'set {key} to the master, or name its Sentinels in redis.sentinels',
  MOVED: NODE_OF_CLUSTER,
  CLUSTER: NODE_OF_CLUSTER,
  CLUSTERDOWN: 'see CLUSTER INFO of Redis: the cluster does not serve every slot',
  OOM: 'raise maxmemory of Redis, or set its maxmemory-policy to volatile-lru',
  MISCONF: 'see the log of Redis: it cannot save its data',
};

export const SLOW_REMEDY = 'look for a slow Redis or network, or raise redis.commandTimeout';

/** Remedies by a part of the reason; the first counts. */
const REMEDIES_BY_PART: readonly (readonly [RegExp, string])[] = [
  [/cluster support disabled/, 'set redis.url instead of redis.cluster'],
  [
    /unknown command ['`]sentinel/i,
    'a Redis responds there, not a Sentinel: set redis.url instead of redis.sentinels',
  ],
  [
    /\bunknown (?:\w+ )?command\b|invalid command passed/i,
    'remove its rename-command from the configuration of Redis, or use another server: this one lacks a command',
  ],
  [/\b(?:ENOTFOUND|EAI_AGAIN)\b/, 'check the host name in {key}'],
  [
    /\bE(?:CONNREFUSED|CONNRESET|TIMEDOUT|HOSTUNREACH|NETUNREACH)\b/,
    'check that Redis runs at {key}, and that this machine can reach it',
  ],
  [/ responds there, not Redis$/, 'check {key}'],
  [/before secure TLS connection/, 'check whether {key} should be redis or rediss'],
  [/^(?:Command timed out|Redis did not answer in time)/, SLOW_REMEDY],
  [/self-signed certificate|unable to (?:get|verify) /, 'set redis.caFile'],
  [/certificate has expired/, 'renew the certificate of Redis'],
  [/certificate is not yet valid/, 'check the clocks'],
  [/certificate's altnames/, 'use a name of its certificate in {key}'],
];

/** Returns the remedy for an error reply or a failed connection, if known. `key`: configuration key of the address. */
export function redisRemedy(reason: string, key: string): string | undefined {
  const [word = ''] = /^[A-Z]+(?= )/.exec(reason) ?? [];
  const ofCluster = key === 'redis.cluster' ? ' +spublish +ssubscribe +cluster|slots +cluster|info' : '';
  const remedy = REMEDIES_BY_PART.find(([part]) => part.test(reason))?.[1] ?? REMEDIES[word];
  return remedy?.replace('{key}', key).replace('{of cluster}', ofCluster);
}
