// Classifies Redis errors, suggests remedies to the operator, and reports each reason once.

const MAX_REASON_LENGTH = 200;

/**
 * Whether Redis works but refuses this command: it is full, cannot save, lacks replicas, or the key type is
 * wrong.
 */
export const concernsOneCommand = (error: unknown): boolean =>
  error instanceof Error && /\b(OOM|WRONGTYPE|MISCONF|NOREPLICAS)\b/.test(error.message);

/** Whether Redis itself replied with an error, for example NOPERM or CLUSTERDOWN. */
export const isErrorReply = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'ReplyError';

export const timeoutError = (): Error => new Error('Redis did not answer in time');

const MAX_REASONS = 10;

/** Reports each reason for a Redis outage once, until Redis is back. */
export class TroubleReporter {
  readonly #onTrouble: ((reason: string) => void) | undefined;
  readonly #reasons = new Set<string>();

  constructor(onTrouble: ((reason: string) => void) | undefined) {
    this.#onTrouble = onTrouble;
  }

  report(error: unknown): void {
    const reason = redisReason(error);
    if (this.#reasons.size >= MAX_REASONS || this.#reasons.has(reason)) return;
    this.#reasons.add(reason);
    this.#onTrouble?.(reason);
  }

  /** Clears the reported reasons when Redis is back. */
  clear(): void {
    this.#reasons.clear();
  }
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
  return text.replace(/[,.]? with args beginning with.*$/s, '').slice(0, MAX_REASON_LENGTH);
}

const NODE_OF_CLUSTER = 'name the nodes of the cluster in redis.cluster, instead of one of them in {key}';

/** Remedies by error code, the first word of an error reply. */
const REMEDIES: Readonly<Record<string, string>> = {
  NOAUTH: 'check the user and the password in {key}',
  WRONGPASS: 'check the user and the password in {key}',
  NOPERM:
    'give its user +@read +@write +eval +evalsha +publish +subscribe +@connection +info +time for the keys and channels of redis.keyPrefix (by default hrp:*)',
  READONLY: 'set {key} to the master, or name its Sentinels in redis.sentinels',
  MOVED: NODE_OF_CLUSTER,
  CLUSTER: NODE_OF_CLUSTER,
  CLUSTERDOWN: 'see CLUSTER INFO of Redis: the cluster does not serve every slot',
  OOM: 'raise maxmemory of Redis, or set its maxmemory-policy to volatile-lru',
  MISCONF: 'see the log of Redis: it cannot save its data',
};

/**
 * Returns the remedy for an error reply; undefined for connection errors. `key`: configuration key of the
 * address.
 */
export function redisRemedy(reason: string, key: string): string | undefined {
  if (reason.includes('cluster support disabled')) return 'set redis.url instead of redis.cluster';
  const [word = ''] = /^[A-Z]+(?= )/.exec(reason) ?? [];
  return REMEDIES[word]?.replace('{key}', key);
}
