// What is tried at the start: each upstream, its mirrors, Redis and the reverse look-up service.
import type { Config } from '../config/schema.js';
import { type ConfiguredServer, upstreamServers } from '../config/upstream-servers.js';
import { PING, type ProbeReport, SITE, type ServerProbe, probeServer } from '../upstream/probe.js';
import { REVERSE_LOOKUP_KEYS, keysAt } from '../upstream/server-keys.js';
import { redisAddress } from './cache.js';
import { redisServer, tryRedis } from './redis-probe.js';
import { newPseudonym } from '../upstream/caller.js';
import { readTrust } from '../upstream/fingerprint.js';

export type ProbeTarget = 'upstream' | 'mirror' | 'redis' | 'reverse look-up';

export interface Probe {
  target: ProbeTarget;
  /** Its address, without credentials. */
  server: string;
  /** Tries it once; never rejects. */
  run: (signal: AbortSignal) => Promise<ProbeReport>;
}

export function createProbes(config: Config): Probe[] {
  const pseudonym = newPseudonym();
  return [
    ...upstreamServers(config).flatMap((server) => probesOf(server, pseudonym)),
    ...redisProbes(config),
    ...reverseLookupProbes(config, pseudonym),
  ];
}

function probesOf(server: ConfiguredServer, pseudonym: string): Probe[] {
  const { url, mirrors, timeoutMs, maxBodyBytes } = server;
  const common = { question: SITE, pseudonym, ...readTrust(server), timeoutMs, maxBodyBytes };
  return [
    probeOf('upstream', { ...common, url, keys: keysAt(server, url) }),
    ...mirrors.map((mirror) => probeOf('mirror', { ...common, url: mirror, keys: keysAt(server, mirror) })),
  ];
}

function redisProbes(config: Config): Probe[] {
  const address = redisAddress(config);
  if (address === undefined) return [];
  return [{ target: 'redis', server: redisServer(address), run: () => tryRedis(address) }];
}

function reverseLookupProbes({ reverseLookup: { url }, upstream }: Config, pseudonym: string): Probe[] {
  if (url === undefined) return [];
  const limits = { timeoutMs: upstream.timeoutMs, maxBodyBytes: upstream.maxBodyBytes };
  const keys = REVERSE_LOOKUP_KEYS;
  return [probeOf('reverse look-up', { url, question: PING, keys, pseudonym, ...limits })];
}

const probeOf = (target: ProbeTarget, probe: ServerProbe): Probe => ({
  target,
  server: probe.url,
  run: (signal) => probeServer(probe, signal),
});
