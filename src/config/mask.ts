// Keeps passwords out of everything that prints configuration: problems, logs, the admin listener.
import type { Config } from './schema.js';
import { parseUrl } from './urls.js';

const LONGEST = 80;

/** A given value as a problem may show it. An address that is none is hidden: it may be a bare password. */
export function shownValue(key: string, value: unknown): string {
  if (typeof value === 'object') return Array.isArray(value) ? 'a list' : 'a mapping';
  if (typeof value !== 'string') return JSON.stringify(value);
  if (key.endsWith('.url')) return parseUrl(value) ? `"${maskUrl(value)}"` : '(hidden)';
  if (key === 'admin.token') return '(hidden)';
  // Lists of nodes may hold a password in any place.
  if (key === 'redis.cluster' || key === 'redis.sentinels') return '(hidden)';
  return JSON.stringify(value.length > LONGEST ? `${value.slice(0, LONGEST)}…` : value);
}

/** An address with its credentials and its query replaced. */
export function maskUrl(text: string): string {
  return text.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1***@').replace(/[?#].*$/s, '?***');
}

/** The configuration as it may be printed. */
export function maskedConfig(config: Config): Config {
  const { url, sentinels, cluster } = config.redis;
  const masked = {
    url: url === null ? null : maskUrl(url),
    sentinels: sentinels?.map(maskUrl) ?? null,
    cluster: cluster?.map(maskUrl) ?? null,
  };
  const token = config.admin.token === null ? null : '***';
  return { ...config, redis: { ...config.redis, ...masked }, admin: { ...config.admin, token } };
}
