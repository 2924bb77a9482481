// The sections of the core, and the rules that involve several of their keys.
import { isLoopback, isSameListener, readOrigin } from './addresses.js';
import { cache, redis } from './schema-cache.js';
import { deletion, page, redirect, v2 } from './schema-interfaces.js';
import { admin, http, log, server } from './schema-server.js';
import type { Rule, SectionsOf } from './fields.js';
import { ORIGIN, upstream, upstreams } from './schema-upstream.js';
import { type ServerConfig, type UpstreamSections, upstreamServers } from './upstream-servers.js';

export const SECTIONS = {
  server,
  http,
  upstream,
  upstreams,
  redis,
  cache,
  deletion,
  v2,
  redirect,
  page,
  admin,
  log,
};

/** The parsed configuration, with durations in milliseconds (`…Ms`) and sizes in bytes (`…Bytes`). */
export type Config = SectionsOf<typeof SECTIONS>;

export function rules({ server: listener, ...config }: Config): Rule[] {
  const isOpenAdmin = config.admin.token === undefined && !isLoopback(config.admin.host);
  const { minTtlMs, maxTtlMs } = config.cache.found;
  return [
    ...upstreamRules(config),
    [
      config.redis.cluster !== undefined && config.redis.sentinels !== undefined,
      'redis.sentinels',
      'give this or redis.cluster, not both',
    ],
    [isOpenAdmin, 'admin.host', 'set admin.token, or give a loopback address such as 127.0.0.1'],
    [
      isSameListener(listener, config.admin),
      'admin.port',
      'give another port than that of server.port',
      ['server.port', `give another port than that of admin.port, ${config.admin.port}`],
    ],
    [minTtlMs > maxTtlMs, 'cache.found.minTtl', 'give at most cache.found.maxTtl'],
  ];
}

function upstreamRules(config: UpstreamSections): Rule[] {
  const { url, staleAfterMs, timeoutMs } = config.upstream;
  const servers = upstreamServers(config);
  const repeated = repeatedPrefix(servers);
  const tooShort = [{ key: 'upstream', timeoutMs }, ...servers].find(
    (each) => each.timeoutMs <= staleAfterMs,
  );
  return [
    [url !== undefined && config.upstreams.length > 0, 'upstream.url', 'give this or upstreams, not both'],
    [
      repeated !== undefined,
      'upstreams',
      `prefix ${repeated ?? ''} is given twice: only after a repository may another server follow, which is read-only too`,
    ],
    [
      tooShort !== undefined,
      'upstream.staleAfter',
      'give less than upstream.timeout',
      [
        `${tooShort?.key ?? ''}.timeout`,
        `give more than upstream.staleAfter, ${staleAfterMs / 1000}s, or lower that too`,
      ],
    ],
    ...config.upstreams.map(addressRule),
    ...servers.flatMap(trustRules),
  ];
}

/**
 * Returns a prefix that several servers may not share: only repositories may precede another server, because a Handle
 * server answers for all handles of its prefix; and the last server must be read-only. Undefined if there is none.
 */
function repeatedPrefix(servers: readonly ServerConfig[]): string | undefined {
  const byPrefix = new Map<string, Set<ServerConfig>>();
  for (const server of servers)
    for (const prefix of server.prefixes)
      byPrefix.set(prefix, (byPrefix.get(prefix) ?? new Set()).add(server));
  for (const [prefix, sharing] of byPrefix) {
    const [last, ...earlier] = [...sharing].reverse();
    const takesWrites = last?.kind === 'handle-server' && !last.readOnly;
    if (earlier.length > 0 && (takesWrites || earlier.some(({ kind }) => kind === 'handle-server')))
      return prefix;
  }
  return undefined;
}

/** Checks the address of a Handle server, and that only `kind: none` has none. */
function addressRule({ kind, url, secondaries }: Config['upstreams'][number], at: number): Rule {
  const key = `upstreams.${at}.url`;
  if (kind === 'none') return [url !== undefined, key, 'leave it out: there is no server with kind: none'];
  if (url === undefined) return [true, key, 'give the address of the server'];
  const isOrigin = [url, ...secondaries].every((each) => readOrigin(each) !== undefined);
  return [kind === 'handle-server' && !isOrigin, key, `give ${ORIGIN}; DSpace needs kind: dspace`];
}

function trustRules({ url, secondaries, key, fingerprint, ...client }: ServerConfig): Rule[] {
  const { clientCertificateFile, clientKeyFile } = client;
  const plainUrl = [url, ...secondaries].find((address) => address.startsWith('http:'));
  const needsTls = (name: string, value: string | undefined): Rule => [
    value !== undefined && plainUrl !== undefined,
    `${key}.${name}`,
    `there is no certificate at ${plainUrl ?? ''}: give it as https`,
  ];
  const isHalf = (clientCertificateFile === undefined) !== (clientKeyFile === undefined);
  const missing = clientKeyFile === undefined ? 'clientKeyFile' : 'clientCertificateFile';
  return [
    needsTls('fingerprint', fingerprint),
    needsTls('clientCertificateFile', clientCertificateFile),
    [isHalf, `${key}.${missing}`, 'a client certificate needs both its file and the file of its key'],
  ];
}
