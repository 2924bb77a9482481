// Starts a master, its replica and a Sentinel on free ports.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { vi } from 'vitest';
import { type RedisServer, startRedis } from './redis-server.js';
import { freePort } from './free-port.js';

export interface Guarded {
  /** Value of `redis.sentinels`. */
  sentinels: string;
  servers: RedisServer[];
  /** Returns the current master, as reported by the Sentinel. */
  master: () => Promise<RedisServer>;
  /** Asks for a failover, and waits until a different server is the master and accepts writes. */
  hasFollowed: (before: RedisServer) => Promise<void>;
  /** Waits until the Sentinel knows a promotable replica. */
  isSafe: () => Promise<void>;
  stop: () => Promise<void>;
}

const NAME = 'mymaster';

export async function startGuardedRedis(): Promise<Guarded> {
  const folder = await mkdtemp(join(tmpdir(), 'redis-sentinel-'));
  const first = await startRedis();
  const servers = [first, await startRedis(['--replicaof', '127.0.0.1', String(first.port)])];
  // Completes replication before the Sentinel's first poll, because the next is ten seconds later.
  await untilMasterHas(servers[1]!);
  const port = await freePort();
  const sentinel = await launchSentinel(join(folder, 'sentinel.conf'), { port, masterPort: first.port });
  const client = new Redis(port, '127.0.0.1');
  client.on('error', () => undefined);
  // After a pause of the machine of two seconds, a Sentinel does nothing for half a minute (TILT mode). Redis 6 has no such setting.
  await client.call('SENTINEL', 'DEBUG', 'TILT-TRIGGER', '600000').catch(() => undefined);
  const master = async (): Promise<RedisServer> => {
    const [, masterPort] = (await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME)) as string[];
    return servers.find((server) => server.port === Number(masterPort))!;
  };
  return {
    sentinels: `127.0.0.1:${port}`,
    servers,
    master,
    async hasFollowed(before) {
      await until(async () => {
        const current = await master();
        if (current !== before) return true;
        await client.call('SENTINEL', 'FAILOVER', NAME).catch(() => undefined);
        return false;
      }, 'no other master');
      const next = new Redis((await master()).port, '127.0.0.1');
      await until(async () => (await next.info('replication')).includes('role:master'), 'it takes no writes');
      next.disconnect();
    },
    async isSafe() {
      await until(async () => {
        const known = (await client.call('SENTINEL', 'REPLICAS', NAME)) as string[][];
        return known.some((fields) =>
          /^(?!.*(s_down|disconnected)).*master-link-status ok/.test(fields.join(' ')),
        );
      }, 'no replica that could follow');
    },
    async stop() {
      client.disconnect();
      sentinel.kill('SIGKILL');
      for (const server of servers) server.thaw();
      await Promise.all(servers.map((server) => server.stop()));
      await rm(folder, { recursive: true });
    },
  };
}

async function untilMasterHas(replica: RedisServer): Promise<void> {
  const client = new Redis(replica.url);
  await until(
    async () => (await client.info('replication')).includes('master_link_status:up'),
    'the replica has not found its master',
  );
  client.disconnect();
}

/** Waits for a condition, for long enough to include a second failover attempt. */
const until = (isSo: () => Promise<boolean>, otherwise: string): Promise<void> =>
  vi.waitFor(
    async () => {
      if (!(await isSo())) throw new Error(otherwise);
    },
    { timeout: 60_000, interval: 50 },
  );

async function launchSentinel(
  file: string,
  { port, masterPort }: { port: number; masterPort: number },
): Promise<ChildProcess> {
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `sentinel monitor ${NAME} 127.0.0.1 ${masterPort} 1`,
    // Failovers are asked for: a machine that stands still would otherwise cause one, which the test does not expect.
    `sentinel down-after-milliseconds ${NAME} 600000`,
    `sentinel failover-timeout ${NAME} 2000`,
  ];
  await writeFile(file, `${lines.join('\n')}\n`);
  const child = spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' });
  await once(child, 'spawn');
  return child;
}
