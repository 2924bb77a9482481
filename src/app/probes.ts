// The startup probes, also used by `check-config --probe`: upstreams, secondaries, Redis and the servers of plugins.
import type { Logger } from '../observe/logger.js';
import type { Config } from '../config/schema.js';
import { upstreamServers } from '../config/upstream-servers.js';
import { type RedisAddress, addressKey, redisAddress } from '../cache/redis/connections.js';
import { EVICTION_REMEDY, redisReason, redisRemedy } from '../cache/redis/errors.js';
import { keyPrefixOf } from '../cache/redis/namespace.js';
import { probeRedis } from '../cache/redis/probe.js';
import type { Context } from '../context.js';
import type { Diagnosis } from '../errors.js';
import { newPseudonym } from '../upstream/caller.js';
import { readTrust } from '../upstream/connections.js';
import { codeOf, diagnose, keysAt } from '../upstream/failure.js';
import {
  type ProbeFailure,
  type ProbeReport,
  pingQuestion,
  presentedCertificate,
  type ServerProbe,
  probeServer,
} from '../upstream/probe.js';
import { type SourceServer, withSources } from '../upstream/contract.js';
import { loadPlugins, sourcesOf } from './load-plugins.js';
import { PLUGINS } from './plugins.js';

export interface Probe {
  /** `upstream`, `secondary`, `redis`, or the name of a server of a plugin. */
  target: string;
  /** The server address, without credentials. */
  server: string;
  /** Probes the server once; never rejects. Calls `onAnswered` once the server itself has responded. */
  run: (asking: { signal: AbortSignal; onAnswered: () => void }) => Promise<ProbeReport>;
}

export async function createProbes(config: Config): Promise<Probe[]> {
  const sources = sourcesOf(await loadPlugins(PLUGINS, config));
  const pseudonym = newPseudonym();
  return [
    ...withSources(upstreamServers(config), sources).flatMap((server) =>
      probesOf(server, config.upstream, pseudonym),
    ),
    ...redisProbes(config),
    ...pluginProbes(config, pseudonym),
  ];
}

function probesOf(
  server: SourceServer,
  { probeHandle, staleAfterMs }: Config['upstream'],
  pseudonym: string,
): Probe[] {
  const { url, secondaries, timeoutMs, maxBodyBytes } = server;
  const placeOf = (at: string) => ({
    url: at,
    question: server.source.protocol({ ...server, url: at }).probe(probeHandle),
    keys: keysAt(server, at),
  });
  const common = { pseudonym, ...readTrust(server), timeoutMs, maxBodyBytes, staleAfterMs };
  return [
    probeOf('upstream', { ...common, ...placeOf(url) }),
    ...secondaries.map((secondary) => probeOf('secondary', { ...common, ...placeOf(secondary) })),
  ];
}

function pluginProbes(config: Config, pseudonym: string): Probe[] {
  const { timeoutMs, maxBodyBytes } = config.upstream;
  const common = { pseudonym, timeoutMs, maxBodyBytes, staleAfterMs: timeoutMs };
  return PLUGINS.flatMap((plugin) => plugin.servers?.(config) ?? []).map(({ name, url, keys }) =>
    probeOf(name, { url, question: pingQuestion(url), keys, ...common }),
  );
}

const probeOf = (target: string, probe: ServerProbe): Probe => ({
  target,
  server: probe.url,
  run: (asking) => probeServer(probe, asking),
});

function redisProbes(config: Config): Probe[] {
  const address = redisAddress(config.redis);
  if (address === undefined) return [];
  const keyPrefix = keyPrefixOf(upstreamServers(config), config);
  return [{ target: 'redis', server: redisServer(address), run: () => tryRedis(address, keyPrefix) }];
}

const redisServer = ({ url, sentinels, cluster }: RedisAddress): string =>
  (cluster ?? sentinels ?? [url ?? '']).map(withoutCredentials).join(',');

function withoutCredentials(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname.replace(/\/$/, '')}`;
}

const CERTIFICATE = { defaultPort: 6379, timeoutMs: 2000 };

/** Probes Redis. Reports the certificate only for a single server, because a cluster has several. */
async function tryRedis(address: RedisAddress, keyPrefix: string): Promise<ProbeReport> {
  const startedAt = performance.now();
  const { url = '' } = address;
  const isTls = url.startsWith('rediss:');
  const certificate = isTls ? presentedCertificate(url, CERTIFICATE) : undefined;
  const answer = await probeRedis(address, keyPrefix).then(
    ({ version, policy }) => ({
      version,
      warning: policy === undefined ? undefined : evictionWarning(policy),
    }),
    (error: unknown) => ({ failure: redisFailure(error, address) }),
  );
  const ms = Math.round(performance.now() - startedAt);
  return { ms, ...answer, certificate: await certificate };
}

const evictionWarning = (policy: string): Diagnosis => ({
  cause: `maxmemory-policy ${policy} may evict locks or coordination keys`,
  remedy: EVICTION_REMEDY,
});

function redisFailure(error: unknown, address: RedisAddress): ProbeFailure {
  const url = addressKey(address);
  const network = codeOf(error);
  const keys = { url, schemes: 'redis or rediss', trust: 'set redis.caFile' };
  // A server without TLS reads the handshake as an incomplete command and waits for the rest.
  const isSilent = network === 'ETIMEDOUT' && address.url?.startsWith('rediss:') === true;
  const remedy = `check whether ${url} should be redis or rediss, and the network`;
  if (network !== undefined)
    return { code: network, ...diagnose(network, error, keys), ...(isSilent && { remedy }) };
  const cause = redisReason(error);
  const [code] = /^(?!ERR )[A-Z]{3,}(?= )/.exec(cause) ?? ['REDIS_UNAVAILABLE'];
  return { code, cause, remedy: redisRemedy(cause, url) ?? `check ${url}` };
}

/** Interval between probes until the upstream or a secondary has responded. */
const REPEAT_MS = 2000;

/** Interval between later probes of servers with TLS, because certificates expire or are renewed. */
const CERTIFICATE_MS = 3_600_000;

/**
 * Probes every server, and logs a result if it has changed. Repeats until a server can serve reads, then
 * checks only certificates. Calls `onAnswered` once the upstream or a secondary has responded. Returns a cancel function.
 */
export function startProbes(
  probes: readonly Probe[],
  { log: logger, metrics }: Context,
  onAnswered: () => void,
): () => void {
  const cancelled = new AbortController();
  const { signal } = cancelled;
  const log = logChanges(logger);
  const readers = probes.filter(({ target }) => target === 'upstream' || target === 'secondary');
  const withTls = readers.filter(({ server }) => server.startsWith('https:'));
  let hasAnswered = false;
  let timer: NodeJS.Timeout | undefined;

  function readerAnswered(): void {
    if (hasAnswered || signal.aborted) return;
    hasAnswered = true;
    onAnswered();
  }

  async function tryOne(probe: Probe): Promise<void> {
    const isReader = readers.includes(probe);
    const report = await probe.run({ signal, onAnswered: isReader ? readerAnswered : () => undefined });
    if (signal.aborted) return;
    log(probe, report);
    if (isReader && report.certificate)
      metrics.setCertificateExpiry(probe.server, report.certificate.expires);
  }

  async function tryAll(round: readonly Probe[]): Promise<void> {
    await Promise.all(round.map(tryOne));
    if (signal.aborted) return;
    const [next, afterMs] = hasAnswered ? [withTls, CERTIFICATE_MS] : [readers, REPEAT_MS];
    if (next.length > 0) timer = setTimeout(() => void tryAll(next), afterMs).unref();
  }

  void tryAll(probes);
  return () => {
    cancelled.abort();
    clearTimeout(timer);
  };
}

/** Returns a function that logs a probe result only if the reason for a failure has changed. */
function logChanges(logger: Logger): (probe: Probe, report: ProbeReport) => void {
  const reasons = new Map<Probe, string>();
  return function logChange(probe, { ms, version, certificate, failure, warning }) {
    const { target, server } = probe;
    const reason = JSON.stringify([failure?.code, (failure ?? warning)?.cause]);
    if (reasons.get(probe) === reason) return;
    reasons.set(probe, reason);
    // The cache logs an eviction policy, also of a Redis that starts later.
    const problem = failure ?? (target === 'redis' ? undefined : warning);
    const line = { target, server, ms, version, ...problem, ...certificate };
    if (failure !== undefined) logger.warn(line, 'probe failed');
    else if (problem !== undefined) logger.warn(line, 'probe succeeded with a warning');
    else logger.info(line, 'probe succeeded');
  };
}
