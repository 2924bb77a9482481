// Names of the keys in Redis.

/** Braces name the part that decides the slot in a Redis Cluster, so all names of one key live together. */
export function redisName(keyPrefix: string, key: string, part: string): string {
  return `${keyPrefix}{${key.replace(/[{}%]/g, encodeURIComponent)}}:${part}`;
}
