// Finds variables that set no key: those of removed keys, and unknown ones with the prefix of a section.
import { type ConfigKey, type ConfigProblem, longVariableOf, variableOf } from './keys.js';

/** Keys that have become constants, by their value and what to do instead. */
const CONSTANTS: Readonly<Record<string, string>> = {
  'server.headersTimeout': '15 s',
  'server.requestTimeout': '60 s',
  'server.answerTimeout': '5 minutes',
  'server.idleTimeout': '2 minutes, or longer if upstream.writeTimeout needs it',
  'http.maxRequestLine': '8 KiB',
  'http.bodiesMaxBytes': '64 MiB, or one body of http.maxBodySize if that is more',
  'http.unsentMaxBytes': '256 MiB',
  'http.hotPath.enabled': 'true, with at most 200,000 responses and 128 MiB',
  'http.hotPath.maxEntries': '200,000',
  'http.hotPath.maxBytes': '128 MiB; size the memory with cache.maxBytes',
  'http.gzipMinBytes': '1 KiB',
  'http.jsonpWithCredentials': 'false',
  'upstream.failoverAfter': '3 s',
  'upstream.connections': '128, and two more for each read that upstream.concurrency allows beyond 64',
  'upstream.queueTimeout': '2 s',
  'upstream.maxBodySize': '8 MiB',
  'upstream.maxRest': '1 minute',
  'upstream.minConcurrency': '8, or upstream.concurrency if that is less',
  'upstream.queue': '1,000',
  'upstream.referralRoot': 'https://hdl.handle.net; for another, give a server in upstreams the prefix 0.NA',
  'upstream.referralsToPrivateNetworks': 'false; give such servers in upstreams',
  'upstream.referralPorts': '80, 443, 8000 and 2641; give servers with other ports in upstreams',
  'upstream.breaker.failures': '10, and the breaker stays open for 5 s',
  'upstream.breaker.openFor': '5 s, after 10 failures',
  'cache.notFound.maxEntries': '100,000',
  'cache.refreshAhead.minHits': '3',
  'cache.snapshot.every': '5 minutes',
  'v2.realm': 'handle',
  'v2.search.maxHandles': '2,000, of which 8 are read concurrently; for more set reverseLookup.url',
  'v2.search.concurrency': '8',
  'v2.lockWait': '10 s',
  'v2.admin.index': '100',
  'v2.admin.permissions': '011111110011; a client that gives others sends its own HS_ADMIN value',
  'redirect.prefixLocations': 'true',
  'page.footerUrl': 'none; give the link in page.footerLinks',
  'admin.maxEventLoopDelay': '1 s',
  'admin.readyWithoutUpstream': 'false; an instance without a server and records has nothing to answer',
  'traffic.unknown.notFoundShare': '0.9',
  'traffic.unknown.for': '10 minutes',
  'batch.enabled': 'true; reject batches with traffic.rules',
  'native.tunnel': 'true; reject native messages with traffic.rules',
  'native.tcp.maxConnections': '1,000',
  'native.tcp.maxConnectionsPerNetwork': 'that of server.maxConnectionsPerNetwork',
  'native.tcp.idleTimeout': '15 s',
  'native.tcp.requestTimeout': '30 s',
  'native.site.description': 'Caching resolver proxy',
};

/** Removed keys, which prevent a start, because an upgrade must not silently drop a limit. */
const REMOVED_KEYS: Readonly<Record<string, string>> = {
  'server.workers':
    'removed: an instance is one process; for more cores run several instances on one Redis, as config/examples/several-instances.md shows',
  'http.rateLimit.perMinute':
    'removed: use traffic.rules, such as [{ name: everybody, limit: { perMinute: 600 } }]',
  'native.udp.answersPerSecond': 'removed: use native.udp.bytesPerSecond, such as 100KiB',
  'traffic.unknown':
    'renamed to traffic.enumeration, with perMinute only: remove notFoundShare (0.9) and for (10 minutes)',
  'traffic.unknown.perMinute': 'renamed to traffic.enumeration.perMinute',
  'redis.writesWithout': 'renamed to redis.disconnectedWrites, with reject instead of refuse',
  'upstream.mirrors': 'renamed to upstream.secondaries',
  'upstream.mirrorMaxTtl': 'renamed to upstream.secondaryMaxTtl',
  'redis.lostMaxAge': 'renamed to redis.disconnectedMaxAge',
  ...Object.fromEntries(
    Object.entries(CONSTANTS).map(([key, value]) => [
      key,
      `no longer a key: remove it; the value is ${value}`,
    ]),
  ),
};

/** Returns the replacement hint for a removed key or section; undefined for a name that never existed. */
export function successorOf(unknown: string): string | undefined {
  const key = unknown.replace(/^upstreams\.\d+\./, 'upstream.');
  return Object.entries(REMOVED_KEYS).find(
    ([removed]) => removed === key || removed.startsWith(`${key}.`),
  )?.[1];
}

export const removedVariables = (env: NodeJS.ProcessEnv): ConfigProblem[] =>
  Object.entries(REMOVED_KEYS)
    .filter(([key]) => (env[variableOf(key)] ?? '').trim() !== '')
    .map(([key, text]) => ({ key, source: `variable ${variableOf(key)}`, text }));

/** Variables of no key: the outgoing proxy, systemd (`CacheDirectory=`), our own commands. */
const OF_OTHERS: readonly string[] = ['HTTP_PROXY', 'CACHE_DIRECTORY', 'ADMIN_URL'];

export function unknownVariables(env: NodeJS.ProcessEnv, keys: readonly ConfigKey[]): ConfigProblem[] {
  const known = new Set([...OF_OTHERS, ...keys.map(({ variable }) => variable)]);
  const sections = [...new Set(keys.map(({ path: [section = ''] }) => `${variableOf(section)}_`))];
  return Object.entries(env).flatMap(([variable, value = '']) => {
    const section = sections.find((start) => variable.startsWith(start));
    if (section === undefined || known.has(variable)) return [];
    if (value.trim() === '' || isOfService(variable, value)) return [];
    return [
      {
        source: `variable ${variable}`,
        text: `unknown variable${variableHint(variable, { section, keys })}`,
      },
    ];
  });
}

const SERVICE = /_SERVICE_(?:HOST|PORT)(?:_|$)|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_|$)/;

/** Whether Kubernetes describes a service: it sets `REDIS_…` in every container for a service `redis`. */
const isOfService = (variable: string, value: string): boolean =>
  SERVICE.test(variable) || (variable.endsWith('_PORT') && /^(?:tcp|udp|sctp):\/\//.test(value));

/** Suggests the variable with the same letters, or those with the longest common start beyond the section. */
function variableHint(
  variable: string,
  { section, keys }: { section: string; keys: readonly ConfigKey[] },
): string {
  let meant: string[] = [];
  let longest = section.length + 2;
  for (const each of keys) {
    const known = longVariableOf(each.key);
    const isSwapped = sortedLetters(variable) === sortedLetters(known);
    const length = isSwapped ? Infinity : commonLength(variable, known);
    if (length > longest) meant = [];
    if (length >= longest) [meant, longest] = [[...meant, each.variable], length];
  }
  return meant.length === 0
    ? '; config/keys.md lists those of the proxy'
    : `; did you mean ${meant.join(' or ')}?`;
}

const sortedLetters = (text: string): string => Array.from(text).sort().join('');

function commonLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length++;
  return length;
}
