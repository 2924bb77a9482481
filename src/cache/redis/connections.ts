// Opens connections to Redis: to one server, to the master that Sentinels name, or to a cluster.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Writable } from 'node:stream';
import type * as Ioredis from 'ioredis';
import type { Cluster, Redis, RedisOptions } from 'ioredis';
import type { Config } from '../../config/schema.js';

/** Loaded on first use, because the package slows every start down. */
const ioredis = (): typeof Ioredis => createRequire(import.meta.url)('ioredis') as typeof Ioredis;

export interface RedisAddress {
  /** Timeout of a command (ms). */
  commandTimeoutMs: number;
  /** One server. With Sentinels: the credentials for the master. Not used for a cluster. */
  url?: string | undefined;
  /** PEM text of the only trusted certificate authority. */
  ca?: string | undefined;
  /** Addresses of Sentinels. */
  sentinels?: readonly string[] | undefined;
  sentinelName?: string | undefined;
  /** Addresses of some nodes of a cluster; the first one contains the credentials. */
  cluster?: readonly string[] | undefined;
}

/** Undefined if no Redis is configured. @throws Error when the PEM file cannot be read */
export function redisAddress({ caFile, ...redis }: Config['redis']): RedisAddress | undefined {
  const ca = caFile === undefined ? undefined : readFileSync(caFile, 'utf8');
  const { url, sentinels, sentinelName, cluster, commandTimeoutMs } = redis;
  if ((url ?? sentinels ?? cluster) === undefined) return undefined;
  return { url, sentinels, sentinelName, cluster, ca, commandTimeoutMs };
}

/** The configuration key that holds the address. */
export const addressKey = ({ cluster, sentinels }: Pick<RedisAddress, 'cluster' | 'sentinels'>): string =>
  cluster ? 'redis.cluster' : sentinels ? 'redis.sentinels' : 'redis.url';

export interface RedisConnections {
  /** The connection for commands; a cluster accepts the same commands. */
  commands: Redis;
  isCluster: boolean;
  /** The connection to the master that holds the slot of a cluster. */
  clientOf: (slot: number) => Redis | undefined;
  /** The current masters. @throws Error when some slots of a cluster have none */
  masters: () => RedisMaster[];
  /** Number of the database. PUBLISH ignores it. */
  database: number;
  /** A new connection to a master, for messages. */
  openMessageConnection: (master: RedisMaster) => Redis;
  /** Looks up the masters again. */
  rediscover: () => void;
}

export interface RedisMaster {
  /** Host and port. */
  name: string;
  client: Redis;
  /** Whether this master serves the slot. */
  holds: (slot: number) => boolean;
}

const CONNECT_TIMEOUT_MS = 2000;
/** A lost message connection is not retried: its owner opens another one, because messages may have been missed. */
const never = (): null => null;
const SLOTS = 16_384;

const settings = {
  // ioredis would otherwise queue commands while Redis is unavailable, past their timeout.
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResubscribe: false,
  enableReadyCheck: true,
  connectTimeout: CONNECT_TIMEOUT_MS,
  retryStrategy: (attempt: number): number => Math.min(50 * 2 ** attempt, 1000),
  // After a failover the old master may come back as a replica.
  reconnectOnError: ({ message }: Error): boolean => message.startsWith('READONLY'),
} satisfies RedisOptions;

export function openRedis(place: RedisAddress): RedisConnections {
  // Every command has this timeout; a command that a request waits for has a shorter one (RedisCommands.run).
  const commandTimeout = Math.max(500, 2 * place.commandTimeoutMs);
  if (place.cluster !== undefined) return openCluster(place, { addresses: place.cluster, commandTimeout });
  const options = {
    ...settings,
    commandTimeout,
    ...(place.sentinels ? sentinelOptions(place) : parseAddress(place.url ?? '', place.ca)),
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
      // A disconnect during the search for the master would end ioredis permanently.
      if (['connect', 'ready'].includes(commands.status)) commands.disconnect(true);
      reconnectIfEnded(commands);
    },
  };
}

/**
 * Call it before a command: all commands of one turn of the event loop are sent in one write. The automatic pipelines of
 * ioredis take more CPU, and hold commands back until earlier ones are answered; a cluster uses them, and has no `stream`.
 */
export function corkForTurn({ stream }: { stream?: Writable }): void {
  if (stream === undefined || stream.writableCorked > 0) return;
  stream.cork();
  setImmediate(() => {
    stream.uncork();
  });
}

function sentinelOptions({ url, ca, sentinels = [], sentinelName = 'mymaster' }: RedisAddress): RedisOptions {
  const { username, password, db, tls } = url === undefined ? ({} as RedisOptions) : parseAddress(url, ca);
  const guards = sentinels.map((address) => parseAddress(address, ca));
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
    // A frozen master keeps its connections: only the Sentinels report that it was replaced.
    failoverDetector: true,
    sentinelRetryStrategy: settings.retryStrategy,
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
  });
}

function openCluster(
  { ca }: RedisAddress,
  { addresses, commandTimeout }: { addresses: readonly string[]; commandTimeout: number },
): RedisConnections {
  const starts = addresses.map((address) => parseAddress(address, ca));
  const { username, password, tls } = starts[0] ?? {};
  const login = withoutUndefined({ username, password, tls });
  const { retryStrategy, enableOfflineQueue, ...ofNode } = settings;
  const { Cluster, Redis } = ioredis();
  const cluster = new Cluster(
    starts.map(({ host, port = 6379 }) => withoutUndefined({ host, port })),
    {
      redisOptions: { ...ofNode, ...login, commandTimeout },
      enableOfflineQueue,
      // Keeps the order while a node connects: single commands would be retried at another node.
      enableAutoPipelining: true,
      clusterRetryStrategy: retryStrategy,
      // Few retries: a command that runs after its timeout could overtake newer ones.
      maxRedirections: 3,
      retryDelayOnFailover: 20,
      retryDelayOnClusterDown: 20,
      slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
      slotsRefreshInterval: 1000,
      // Certificates name hosts, so host names must not be resolved to addresses.
      dnsLookup: (name, found) => {
        found(null, name);
      },
    },
  );
  const clients = new Map<string, Redis>();
  cluster.on('+node', (node: Redis) => clients.set(nameOf(node), node));
  cluster.on('-node', (node: Redis) => clients.delete(nameOf(node)));
  return {
    commands: cluster as unknown as Redis,
    isCluster: true,
    clientOf: (slot) => clients.get(cluster.slots[slot]?.[0] ?? ''),
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
  };
}

/** ioredis ends permanently when a failover interrupts its search for the master. */
function reconnectIfEnded(connection: Redis | Cluster): void {
  if (connection.status !== 'end') return;
  connection.connect().catch(() => undefined);
}

/** ioredis drops a lost node before it knows its successor: some slots have no master then. */
function mastersOf(cluster: Cluster): RedisMaster[] {
  const nodes = new Map(cluster.nodes('master').map((node) => [nameOf(node), node]));
  const wanted = new Set(Array.from({ length: SLOTS }, (_, slot) => cluster.slots[slot]?.[0]));
  return [...wanted].map((name) => {
    const client = name === undefined ? undefined : nodes.get(name);
    if (name === undefined || client === undefined)
      throw new Error(`no connection to the master ${name ?? 'of some slots'}`);
    return { name, client, holds: (slot) => cluster.slots[slot]?.[0] === name };
  });
}

const nameOf = ({ options: { host = '', port = 0 } }: Redis): string => `${host}:${port}`;

/** A cluster has only database 0. */
export const databaseNumber = ({ url, cluster }: Pick<RedisAddress, 'url' | 'cluster'>): number =>
  cluster === undefined && url !== undefined ? (parseAddress(url, undefined).db ?? 0) : 0;

/** The parts of an address as ioredis options. */
function parseAddress(address: string, ca: string | undefined): RedisOptions {
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

/** `exactOptionalPropertyTypes` forbids explicit undefined. */
function withoutUndefined<T extends object>(
  given: T,
): { [K in keyof T]: Exclude<T[K], undefined> } & RedisOptions {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as unknown as {
    [K in keyof T]: Exclude<T[K], undefined>;
  } & RedisOptions;
}

/** A connection to one master for messages. Its replies arrive after all messages that were published before them. */
export interface Subscription {
  ping: () => Promise<unknown>;
  close: () => void;
}

export interface SubscriptionEvents {
  onMessage: (channel: string, text: string) => void;
  /** Called when the connection is lost, or the server does not serve a channel any more. */
  onLost: () => void;
}

/** `watch`: called with the connection before it is open. @throws Error when a channel cannot be subscribed to */
export async function openSubscription(
  connections: RedisConnections,
  { master, channels, watch }: { master: RedisMaster; channels: string[]; watch: (opened: Redis) => void },
  { onMessage, onLost }: SubscriptionEvents,
): Promise<Subscription> {
  const connection = connections.openMessageConnection(master);
  const close = (): void => {
    connection.off('close', onLost);
    connection.disconnect();
  };
  watch(connection);
  connection.on(connections.isCluster ? 'smessage' : 'message', onMessage);
  try {
    await Promise.race([once(connection, 'ready'), closed(connection)]);
    connection.once('close', onLost);
    // ioredis reports an unexpected unsubscription as an error: the server does not serve a channel any more.
    connection.on('error', () => {
      connection.disconnect();
    });
    if (!connections.isCluster) await connection.subscribe(...channels);
    // All channels of one command have to be in one slot.
    else await Promise.all(channels.map((channel) => connection.ssubscribe(channel)));
  } catch (error) {
    close();
    throw error;
  }
  return { ping: () => connection.ping(), close };
}

async function closed(connection: Redis): Promise<never> {
  await once(connection, 'close');
  throw new Error('the message connection was closed');
}
