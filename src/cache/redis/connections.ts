// Opens connections to a Redis server, to a master found through Sentinels, or to a cluster.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Writable } from 'node:stream';
import slotOf from 'cluster-key-slot';
import type * as Ioredis from 'ioredis';
import type { Cluster, Redis, RedisOptions } from 'ioredis';
import type { Config } from '../../config/schema.js';
import { LEASE_MS } from '../coherence/lease.js';
import { redisReason } from './errors.js';

/** Loads ioredis on first use, because importing it slows down every start. */
const ioredis = (): typeof Ioredis => createRequire(import.meta.url)('ioredis') as typeof Ioredis;

export interface RedisAddress {
  commandTimeoutMs: number;
  /** Address of a single server or, with Sentinels, the credentials for the master. Unused in a cluster. */
  url?: string | undefined;
  /** The only trusted certificate authority (PEM). */
  ca?: string | undefined;
  sentinels?: readonly string[] | undefined;
  sentinelName?: string | undefined;
  /** Addresses of some cluster nodes; the first address contains the credentials. */
  cluster?: readonly string[] | undefined;
}

/**
 * Returns the configured Redis address; undefined if none is configured. @throws Error when the PEM file
 * cannot be read
 */
export function redisAddress({ caFile, ...redis }: Config['redis']): RedisAddress | undefined {
  const ca = caFile === undefined ? undefined : readFileSync(caFile, 'utf8');
  const { url, sentinels, sentinelName, cluster, commandTimeoutMs } = redis;
  if ((url ?? sentinels ?? cluster) === undefined) return undefined;
  return { url, sentinels, sentinelName, cluster, ca, commandTimeoutMs };
}

export const addressKey = ({ cluster, sentinels }: RedisAddress): string =>
  cluster ? 'redis.cluster' : sentinels ? 'redis.sentinels' : 'redis.url';

export interface RedisConnections {
  /** The command connection; a cluster client accepts the same commands. */
  commands: Redis;
  isCluster: boolean;
  /** Returns the connection to the master that holds the key; undefined if there is none. */
  clientOf: (name: string) => Redis | undefined;
  /** Returns the current masters. @throws Error when a cluster slot has no master */
  masters: () => RedisMaster[];
  /** Database number, which PUBLISH ignores. */
  database: number;
  openMessageConnection: (master: RedisMaster) => Redis;
  rediscover: () => void;
  /** Reads which master of a cluster holds which slot. */
  refreshSlots: () => Promise<void>;
}

export interface RedisMaster {
  /** Host and port. */
  name: string;
  client: Redis;
  holds: (slot: number) => boolean;
}

const CONNECT_TIMEOUT_MS = 2000;
/** Disables reconnection: messages may be lost, so the owner of a message connection opens a new one. */
const never = (): null => null;
const SLOTS = 16_384;

/** Delay of the attempts during a lease (ms): an outage that is shorter than the lease costs no entry. */
const FIRST_RECONNECTS_MS = 100;
const FIRST_RECONNECTS = LEASE_MS / FIRST_RECONNECTS_MS;

/** Returns the delay before an attempt to reconnect (ms), counted from 1 after each loss. */
export const reconnectDelayMs = (attempt: number): number =>
  Math.min(FIRST_RECONNECTS_MS * 2 ** Math.max(0, attempt - FIRST_RECONNECTS), 1000);

const settings = {
  // An offline queue would hold commands past their timeout while Redis is unavailable.
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResubscribe: false,
  enableReadyCheck: true,
  connectTimeout: CONNECT_TIMEOUT_MS,
  retryStrategy: reconnectDelayMs,
  // RESP3 needs HELLO, which an ACL may not allow, and no reply here gains from it.
  protocol: 2,
  // The old master may return as a replica after a failover.
  reconnectOnError: (error: Error): boolean => redisReason(error).startsWith('READONLY'),
} satisfies RedisOptions;

export function openRedis(place: RedisAddress): RedisConnections {
  // Upper bound for every command; commands on the request path have a shorter timeout (RedisCommands.run).
  const commandTimeout = Math.max(500, 2 * place.commandTimeoutMs);
  if (place.cluster !== undefined) return openCluster(place, { addresses: place.cluster, commandTimeout });
  const options = {
    ...settings,
    commandTimeout,
    ...(place.sentinels ? sentinelOptions(place) : parseRedisUrl(place.url ?? '', place.ca)),
  };
  const { Redis } = ioredis();
  const commands = new Redis(options);
  return {
    commands,
    isCluster: false,
    clientOf: () => commands,
    database: databaseNumber(place),
    masters: () => [{ name: 'master', client: commands, holds: () => true }],
    openMessageConnection: () => new Redis({ ...options, retryStrategy: never }),
    rediscover() {
      // A disconnect during the lookup of the master would end ioredis permanently.
      if (['connect', 'ready'].includes(commands.status)) commands.disconnect(true);
      reconnectIfEnded(commands);
    },
    refreshSlots: () => Promise.resolve(),
  };
}

/**
 * Sends all commands of one event-loop turn in a single write; call it before each command. The automatic
 * pipelines of ioredis use more CPU, and delay commands until earlier replies arrive. A cluster uses these
 * pipelines, and has no `stream`.
 */
export function corkForTurn({ stream }: { stream?: Writable }): void {
  if (stream === undefined || stream.writableCorked > 0) return;
  stream.cork();
  setImmediate(() => {
    stream.uncork();
  });
}

function sentinelOptions({ url, ca, sentinels = [], sentinelName = 'mymaster' }: RedisAddress) {
  const { username, password, db, tls } = parseRedisUrl(url ?? 'redis://', ca);
  const guards = sentinels.map((address) => parseRedisUrl(address, ca));
  const [first] = guards;
  return withoutUndefined({
    sentinels: guards.map(({ host, port = 26_379 }) => withoutUndefined({ host, port })),
    name: sentinelName,
    username,
    password,
    db,
    tls,
    enableTLSForSentinelMode: tls !== undefined,
    sentinelUsername: first?.username,
    sentinelPassword: first?.password,
    sentinelTLS: first?.tls,
    // A frozen master keeps its connections open: only the Sentinels report its replacement.
    failoverDetector: true,
    sentinelRetryStrategy: settings.retryStrategy,
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
  });
}

function openCluster(
  { ca }: RedisAddress,
  { addresses, commandTimeout }: { addresses: readonly string[]; commandTimeout: number },
): RedisConnections {
  const starts = addresses.map((address) => parseRedisUrl(address, ca));
  const { username, password, tls } = starts[0] ?? {};
  const login = withoutUndefined({ username, password, tls });
  const { retryStrategy, enableOfflineQueue, ...ofNode } = settings;
  const { Cluster, Redis } = ioredis();
  const cluster = new Cluster(
    starts.map(({ host, port = 6379 }) => withoutUndefined({ host, port })),
    {
      redisOptions: { ...ofNode, ...login, commandTimeout },
      enableOfflineQueue,
      // Pipelining preserves the command order while a node connects: single commands would be retried on
      // different nodes.
      enableAutoPipelining: true,
      clusterRetryStrategy: retryStrategy,
      // Retries are few, because a command that runs after its timeout may run after newer commands.
      maxRedirections: 3,
      retryDelayOnFailover: 20,
      retryDelayOnClusterDown: 20,
      slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
      slotsRefreshInterval: 1000,
      // Certificates contain host names, so these must not be resolved to addresses.
      dnsLookup: (name, found) => {
        found(null, name);
      },
    },
  );
  failPipelinesWithoutResults(cluster);
  const clients = new Map<string, Redis>();
  cluster.on('+node', (node: Redis) => clients.set(serverName(node), node));
  cluster.on('-node', (node: Redis) => clients.delete(serverName(node)));
  return {
    commands: cluster as unknown as Redis,
    isCluster: true,
    clientOf: (name) => clients.get(cluster.slots[slotOf(name)]?.[0] ?? ''),
    database: 0,
    masters: () => mastersOf(cluster),
    openMessageConnection({ client: { options } }) {
      const { host, port = 6379 } = options;
      return new Redis(
        withoutUndefined({ ...settings, ...login, commandTimeout, host, port, retryStrategy: never }),
      );
    },
    rediscover() {
      cluster.refreshSlotsCache();
      reconnectIfEnded(cluster);
    },
    refreshSlots: () =>
      new Promise((resolve) => {
        cluster.refreshSlotsCache(() => {
          resolve();
        });
      }),
  };
}

interface PipelineOutcome {
  resolve: (results: readonly unknown[]) => void;
  reject: (error: Error) => void;
}

/**
 * Fails the commands of a pipeline that has no results. When an ASK is the last redirection, as while a slot moves,
 * ioredis drops the results, and then throws in a callback, which would end the process (its issue 1931).
 */
function failPipelinesWithoutResults(cluster: Cluster): void {
  const create = cluster.pipeline.bind(cluster);
  cluster.pipeline = (...given) => {
    const pipeline = create(...given) as ReturnType<typeof create> & PipelineOutcome;
    const { resolve, reject } = pipeline;
    pipeline.resolve = (results) => {
      if (results.length > 0) resolve(results);
      else reject(new Error('too many redirections in the cluster'));
    };
    return pipeline;
  };
}

/** Reconnects ioredis, which ends permanently when a failover interrupts its lookup of the master. */
function reconnectIfEnded(connection: Redis | Cluster): void {
  if (connection.status !== 'end') return;
  connection.connect().catch(() => undefined);
}

/**
 * Returns the masters of all slots. @throws Error when a slot has no master: ioredis drops a lost node before
 * it knows the successor
 */
function mastersOf(cluster: Cluster): RedisMaster[] {
  const nodes = new Map(cluster.nodes('master').map((node) => [serverName(node), node]));
  const wanted = new Set(Array.from({ length: SLOTS }, (_, slot) => cluster.slots[slot]?.[0]));
  return [...wanted].map((name) => {
    const client = name === undefined ? undefined : nodes.get(name);
    if (name === undefined || client === undefined)
      throw new Error(`no connection to the master ${name ?? 'of some slots'}`);
    return { name, client, holds: (slot) => cluster.slots[slot]?.[0] === name };
  });
}

const serverName = ({ options: { host = '', port = 0 } }: Redis): string => `${host}:${port}`;

/** Returns the database number in the address; a cluster has only database 0. */
export const databaseNumber = ({ url, cluster }: RedisAddress): number =>
  cluster === undefined && url !== undefined ? (parseRedisUrl(url, undefined).db ?? 0) : 0;

function parseRedisUrl(address: string, ca: string | undefined) {
  const { protocol, hostname, port, username, password, pathname } = new URL(address);
  const db = Number(pathname.slice(1));
  const unescaped = (text: string): string | undefined =>
    text === '' ? undefined : decodeURIComponent(text);
  return withoutUndefined({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? undefined : Number(port),
    username: unescaped(username),
    password: unescaped(password),
    db: Number.isInteger(db) ? db : undefined,
    tls: protocol === 'rediss:' ? { ...(ca !== undefined && { ca }) } : undefined,
  });
}

/** Removes undefined properties, which `exactOptionalPropertyTypes` forbids. */
function withoutUndefined<T extends object>(given: T) {
  const members = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.fromEntries(members) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/** Reason of a cluster that has moved a channel to a different node. */
const CHANNEL_LOST = 'the server has stopped serving a channel';

/** A message connection to one master. Its replies arrive after all earlier messages. */
export interface Subscription {
  ping: () => Promise<unknown>;
  close: () => void;
}

export interface SubscriptionEvents {
  onMessage: (channel: string, text: string) => void;
  /** Called when the connection is lost, or the server stops serving a channel. */
  onLost: () => void;
}

/**
 * Subscribes to channels on a new connection, which `watch` receives before it opens. @throws Error when a
 * subscription fails
 */
export async function openSubscription(
  connections: RedisConnections,
  { master, channels, watch }: { master: RedisMaster; channels: string[]; watch: (opened: Redis) => void },
  { onMessage, onLost }: SubscriptionEvents,
): Promise<Subscription> {
  const connection = connections.openMessageConnection(master);
  let hasMoved = false;
  const close = (): void => {
    connection.off('close', onLost);
    connection.disconnect();
  };
  watch(connection);
  connection.on(connections.isCluster ? 'smessage' : 'message', onMessage);
  try {
    await Promise.race([once(connection, 'ready'), closed(connection)]);
    connection.once('close', onLost);
    // A reply to no command: messages may be missing too.
    connection.on('error', () => {
      connection.disconnect();
    });
    // A failover takes all channels, and each further `disconnect` would add a listener to the socket.
    connection.once('moved', () => {
      hasMoved = true;
      connection.emit('error', new Error(CHANNEL_LOST));
    });
    // SSUBSCRIBE accepts only channels of one slot.
    const subscribed = connections.isCluster
      ? Promise.all(channels.map((channel) => connection.ssubscribe(channel)))
      : connection.subscribe(...channels);
    await Promise.race([subscribed, closed(connection)]);
  } catch (error) {
    close();
    throw error;
  }
  return {
    async ping() {
      await connection.ping();
      // The reply may follow the end of a channel in one packet, which is read before the connection is closed.
      if (hasMoved) throw new Error(CHANNEL_LOST);
    },
    close,
  };
}

async function closed(connection: Redis): Promise<never> {
  await once(connection, 'close');
  throw new Error('the message connection was closed');
}
