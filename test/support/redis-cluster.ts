// Starts a Redis Cluster for tests: masters that share all slots, on free ports.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { vi } from 'vitest';
import { type RedisServer, startRedis } from './redis-server.js';
import { freePort } from './free-port.js';

export interface RedisCluster {
  /** Value of `redis.cluster`. */
  nodes: string;
  servers: RedisServer[];
  /** Returns all keys that match the pattern, each with the number of its node. */
  keys: (pattern: string) => Promise<{ key: string; node: number }[]>;
  /** Waits until every node reports the cluster as healthy. */
  isWell: () => Promise<void>;
  /** Adds a replica, which has the records of this master when the promise resolves. */
  addReplica: (of: number) => Promise<RedisServer>;
  stop: () => Promise<void>;
}

const SLOTS = 16_384;
const PATIENT = { timeout: 60_000, interval: 50 };
/** Node timeout, longer than brief stalls on a busy machine. */
const NODE_TIMEOUT_MS = '5000';

export async function startRedisCluster(size = 3, extra: string[] = []): Promise<RedisCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'redis-cluster-'));
  const buses = await Promise.all(Array.from({ length: size }, freePort));
  const startNode = (bus: number, at: number): Promise<RedisServer> =>
    startRedis([
      ...['--cluster-enabled', 'yes', '--cluster-port', String(bus), '--dir', folder],
      ...['--cluster-config-file', `nodes-${at}.conf`, '--cluster-node-timeout', NODE_TIMEOUT_MS],
      ...extra,
    ]);
  const servers = await Promise.all(buses.map(startNode));
  const clients = servers.map(({ url }) => new Redis(url).on('error', () => undefined));
  const first = clients[0]!;
  for (const [at, client] of clients.entries()) {
    const from = Math.ceil((at * SLOTS) / size);
    await client.cluster('ADDSLOTSRANGE', from, Math.ceil(((at + 1) * SLOTS) / size) - 1);
    await client.call('CLUSTER', 'SET-CONFIG-EPOCH', String(at + 1));
    if (at > 0)
      await first.call('CLUSTER', 'MEET', '127.0.0.1', String(servers[at]!.port), String(buses[at]));
  }
  const finds = async (client: Redis): Promise<boolean> => {
    const info = await client.cluster('INFO').catch(() => '');
    return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${size}`);
  };
  const isWell = (): Promise<void> =>
    vi.waitFor(async () => {
      if (!(await Promise.all(clients.map(finds))).every(Boolean)) throw new Error('the cluster is not well');
    }, PATIENT);
  await isWell();
  return {
    nodes: servers.map(({ port }) => `127.0.0.1:${port}`).join(','),
    servers,
    isWell,
    async keys(pattern) {
      const found = await Promise.all(clients.map((client) => client.keys(pattern)));
      return found.flatMap((keys, node) => keys.map((key) => ({ key, node })));
    },
    async addReplica(of) {
      const bus = await freePort();
      const server = await startNode(bus, servers.length);
      const client = new Redis(server.url).on('error', () => undefined);
      await first.call('CLUSTER', 'MEET', '127.0.0.1', String(server.port), String(bus));
      const master = await clients[of]!.cluster('MYID');
      // It learns of the master by gossip.
      await vi.waitFor(() => client.cluster('REPLICATE', master), PATIENT);
      await vi.waitFor(async () => {
        if (!(await client.info('replication')).includes('master_link_status:up'))
          throw new Error('the replica is not in sync');
      }, PATIENT);
      servers.push(server);
      clients.push(client);
      return server;
    },
    async stop() {
      for (const client of clients) client.disconnect();
      await Promise.all(servers.map((server) => server.stop()));
      await rm(folder, { recursive: true });
    },
  };
}
