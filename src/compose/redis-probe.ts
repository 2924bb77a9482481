// Tries Redis once: whether it answers, how fast, with which version and certificate.
import type { RedisAddress } from '../cache/redis/connections.js';
import { reasonOf } from '../cache/redis/errors.js';
import { probeRedis } from '../cache/redis/probe.js';
import { presentedCertificate } from '../upstream/certificate.js';
import { codeOf, diagnose } from '../upstream/failure.js';
import type { ProbeFailure, ProbeReport } from '../upstream/probe.js';
import type { ServerKeys } from '../upstream/server-keys.js';

/** The addresses that are tried. */
export const redisServer = ({ url, sentinels, cluster }: RedisAddress): string =>
  (cluster ?? sentinels ?? [url ?? '']).map(withoutCredentials).join(',');

function withoutCredentials(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname.replace(/\/$/, '')}`;
}

const CERTIFICATE = { defaultPort: 6379, timeoutMs: 2000 };

/** The certificate is that of a single server: a cluster has many. */
export async function tryRedis(address: RedisAddress): Promise<ProbeReport> {
  const startedAt = performance.now();
  const { url = '' } = address;
  const isTls = url.startsWith('rediss:');
  const certificate = isTls ? presentedCertificate(url, CERTIFICATE) : undefined;
  const answer = await probeRedis(address).then(
    (version) => ({ version, hasAnswered: true }),
    (error: unknown) => ({ failure: redisFailure(error, address), hasAnswered: false }),
  );
  const ms = Math.round(performance.now() - startedAt);
  return { ms, ...answer, certificate: await certificate };
}

function redisFailure(error: unknown, address: RedisAddress): ProbeFailure {
  const keys = redisKeys(address);
  const network = codeOf(error);
  if (network !== undefined) return { code: network, ...diagnose(network, error, keys) };
  const cause = reasonOf(error);
  const [code] = /^[A-Z]{4,}(?= )/.exec(cause) ?? ['REDIS_UNAVAILABLE'];
  return { code, cause, remedy: remedyOf(cause, keys.url) };
}

const redisKeys = ({ cluster, sentinels }: RedisAddress): ServerKeys => ({
  url: cluster ? 'redis.cluster' : sentinels ? 'redis.sentinels' : 'redis.url',
  schemes: 'redis or rediss',
  trust: 'set redis.caFile',
});

function remedyOf(cause: string, url: string): string {
  if (/NOAUTH|WRONGPASS|AUTH/.test(cause)) return `check the user and the password in ${url}`;
  if (cause.includes('cluster support disabled')) return 'set redis.url instead of redis.cluster';
  return `check ${url}`;
}
