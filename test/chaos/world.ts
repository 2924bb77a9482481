// Runs built proxies on one Redis in front of a demo server, and injects faults.
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { type ControlledServer, createControlledServer } from '../support/demo-control.js';
import { ask } from '../support/ask.js';
import { linesOf, startWebhookReceiver } from '../support/changes.js';
import { type Program, startMain } from '../support/built-proxy.js';
import { fixed } from '../support/fixed.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import type { Event, RedisFault } from './plan.js';
import type { Line } from './published.js';
import { freePort } from '../support/free-port.js';

export interface ProxyLife {
  /** Unique name for each start of a proxy. */
  name: string;
  url: string;
  adminUrl: string;
  startedAt: number;
  /** False from just before the kill. */
  isAlive: boolean;
  /** Previous life of the same proxy. */
  before: ProxyLife | undefined;
  killedAt?: number;
  /** Time at which the metrics first showed Redis as connected; undefined until then. */
  joinedAt?: number;
  /** Times at which the snapshot was read and written; undefined until it was read. */
  restored?: { at: number; writtenAt: number };
}

export interface World {
  demo: ControlledServer;
  /** Returns the running proxies. */
  lives: () => ProxyLife[];
  strike: (event: Event) => Promise<void>;
  wasRedisTroubled: Troubles['were'];
  wasRedisTroubledThroughout: Troubles['wereThroughout'];
  /**
   * Returns when the freeze ended in which a proxy life was at the given time, with the time in which it reads its
   * backlog; undefined if it was not frozen.
   */
  frozenUntil: (life: string, atMs: number) => number | undefined;
  /** Returns how many staleness audits of the running proxies had the result `equal`. */
  equalAudits: () => Promise<number>;
  /** Returns the log lines, from all proxies, that report an older record after an acknowledged write. */
  violations: () => string[];
  /** Returns the lines of the change files of all proxies. */
  changed: () => Line[];
  /** Returns the changes in the deliveries that the webhook's receiver has acknowledged. */
  posted: () => Line[];
  close: () => Promise<void>;
}

export interface WorldOptions {
  instances: number;
  /** Whether proxies without Redis refuse writes and serve nothing as fresh. */
  isStrict: boolean;
  /** Called before a proxy starts again, with the name and the end of its life. */
  onKilled: (life: string, killedAt: number) => void;
  seed: (demo: ControlledServer) => void;
}

export const DISCONNECTED_MAX_AGE_MS = 1000;
/** Time to detect a lost Redis: a heartbeat each second, plus its command timeout. */
export const DETECTION_MS = 1300;
/** Queue and write timeouts, 15 s for the fence, and slack for a busy machine. */
export const FENCE_MS = 25_000;
/** Time after a fault for both proxies to send and receive all missed messages. */
const SETTLE_MS = 5000;
/** Time for a thawed proxy to read its backlog on a busy machine. */
const THAW_MS = 1000;

const ENVIRONMENT = {
  LOG_LEVEL: 'error',
  REDIS_DISCONNECTED_MAX_AGE: `${DISCONNECTED_MAX_AGE_MS}ms`,
  REDIS_COMMAND_TIMEOUT: '300ms',
  UPSTREAM_TIMEOUT: '2s',
  UPSTREAM_STALE_AFTER: '300ms',
  UPSTREAM_WRITE_TIMEOUT: '2s',
  UPSTREAM_RETRY_AFTER: '500ms',
  ...fixed({ upstream: { breaker: { openForMs: 500 } }, cache: { snapshot: { everyMs: 1000 } } }),
  CACHE_NOT_FOUND_TTL: '2s',
  DELETION_HANDLES: 'true',
  AUDIT_HITS: '0.5',
  AUDIT_WRITES: '1',
  // Writes name themselves in `X-Request-Id`.
  HTTP_TRUSTED_PROXIES: 'loopback',
  CHANGES_ENABLED: 'true',
  CHANGES_WEBHOOK_SECRET: Buffer.alloc(32, 'secret').toString('base64'),
};

const STRICT = { REDIS_DISCONNECTED_WRITES: 'reject', REDIS_DISCONNECTED_MAX_AGE: '0s' };

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function startWorld({ instances, isStrict, onKilled, seed }: WorldOptions): Promise<World> {
  const demo = createControlledServer({});
  const { url: upstreamUrl } = await demo.listen(0);
  seed(demo);
  const folder = mkdtempSync(join(tmpdir(), 'chaos-'));
  const redis = await startRedisWithDump(folder);
  const receiver = await startWebhookReceiver();
  const troubles = createTroubles(SETTLE_MS);
  const frozen = new Map<string, Troubles>();
  const env = {
    ...ENVIRONMENT,
    ...(isStrict && STRICT),
    UPSTREAM_URL: upstreamUrl,
    REDIS_URL: redis.url,
    CHANGES_WEBHOOK_URL: receiver.url,
  };
  const proxies = Array.from({ length: instances }, (_, at) =>
    createProxy('abcdefgh'.charAt(at), env, folder),
  );
  await Promise.all(proxies.map((proxy) => proxy.start()));
  const close = async (): Promise<void> => {
    redis.client.disconnect();
    redis.thaw();
    await Promise.all([...proxies.map((proxy) => proxy.kill()), redis.stop(), demo.close()]);
    rmSync(folder, { recursive: true, force: true });
  };
  return {
    demo,
    lives: () => proxies.flatMap(({ life }) => life() ?? []),
    wasRedisTroubled: troubles.were,
    wasRedisTroubledThroughout: troubles.wereThroughout,
    frozenUntil: (life, atMs) => frozen.get(life)?.endOf(atMs),
    async equalAudits() {
      const counts = await Promise.all(proxies.map((proxy) => proxy.equalAudits()));
      return counts.reduce((sum, count) => sum + count, 0);
    },
    violations: () => proxies.flatMap((proxy) => proxy.violations()),
    changed: () => proxies.flatMap((proxy) => proxy.changed()),
    posted: receiver.received,
    async strike(event) {
      switch (event.what) {
        case 'upstream':
          if (event.fault === 'slow') demo.delay(1500);
          else demo.fail(event.fault);
          await pause(event.forMs);
          demo.heal();
          break;
        case 'webhook':
          receiver.respond(503);
          await pause(event.forMs);
          receiver.respond(204);
          break;
        case 'redis':
          if (event.how === 'dump') await redis.dump(event.forMs);
          await troubles.during(() => strikeRedis(redis, event));
          break;
        case 'proxy':
          if (event.how === 'kill') await strikeDown(proxies[event.at]!, event.forMs, onKilled);
          else await freeze(proxies[event.at]!, event.forMs, frozen);
      }
    },
    close,
  };
}

async function freeze(proxy: Proxy, forMs: number, frozen: Map<string, Troubles>): Promise<void> {
  const name = proxy.life()?.name ?? '';
  const freezes = frozen.get(name) ?? createTroubles(THAW_MS);
  frozen.set(name, freezes);
  await freezes.during(() => proxy.freeze(forMs));
}

async function strikeDown(proxy: Proxy, forMs: number, onKilled: WorldOptions['onKilled']): Promise<void> {
  const life = proxy.life();
  await proxy.kill();
  if (life?.killedAt !== undefined) onKilled(life.name, life.killedAt);
  await pause(forMs);
  await proxy.start();
}

interface DumpedRedis extends RedisServer {
  client: Redis;
  /** Saves the data, which the next restart loads, and waits while newer data arrives. */
  dump: (forMs: number) => Promise<void>;
}

async function startRedisWithDump(folder: string): Promise<DumpedRedis> {
  const server = await startRedis(['--dir', folder, '--dbfilename', 'dump.rdb']);
  const client = new Redis(server.url, { maxRetriesPerRequest: null });
  client.on('error', () => undefined);
  return {
    ...server,
    client,
    async dump(forMs) {
      await client.save();
      await pause(forMs);
    },
    async restart() {
      await server.restart();
      rmSync(join(folder, 'dump.rdb'), { force: true });
    },
  };
}

async function strikeRedis(
  redis: DumpedRedis,
  { how, forMs }: { how: RedisFault; forMs: number },
): Promise<void> {
  switch (how) {
    case 'freeze':
      redis.freeze();
      await pause(forMs);
      redis.thaw();
      break;
    case 'kill':
      await redis.stop();
      await pause(forMs);
      await redis.restart();
      break;
    case 'flush':
      await redis.client.flushall();
      break;
    case 'restart':
    case 'dump':
      await redis.restart();
  }
}

interface Troubles {
  were: (fromMs: number, toMs: number) => boolean;
  /** Whether a single period covers both times. */
  wereThroughout: (fromMs: number, toMs: number) => boolean;
  /** Returns the end of the period that contains a time: Infinity while it lasts, undefined if there is none. */
  endOf: (atMs: number) => number | undefined;
  during: (trouble: () => Promise<void>) => Promise<void>;
}

/**
 * Records periods of trouble, each of which ends `settleMs` after the fault. They begin with the fault: an earlier
 * acknowledgement means that every proxy has the message.
 */
function createTroubles(settleMs: number): Troubles {
  const troubles: { from: number; to: number }[] = [];
  return {
    were: (fromMs, toMs) => troubles.some(({ from, to }) => from <= toMs && fromMs <= to),
    wereThroughout: (fromMs, toMs) => troubles.some(({ from, to }) => from <= fromMs && toMs <= to),
    endOf: (atMs) => troubles.find(({ from, to }) => from <= atMs && atMs <= to)?.to,
    async during(trouble) {
      const known = { from: Date.now(), to: Infinity };
      troubles.push(known);
      await trouble();
      known.to = Date.now() + settleMs;
    },
  };
}

interface Proxy {
  life: () => ProxyLife | undefined;
  start: () => Promise<void>;
  kill: () => Promise<void>;
  /** Freezes the process for `forMs`. */
  freeze: (forMs: number) => Promise<void>;
  equalAudits: () => Promise<number>;
  violations: () => string[];
  changed: () => Line[];
}

function createProxy(letter: string, shared: Record<string, string>, folder: string): Proxy {
  // A killed proxy restarts from its last snapshot.
  const snapshot = join(folder, letter);
  const changeFile = `${snapshot}.changes`;
  const files = { CACHE_SNAPSHOT_FILE: snapshot, CHANGES_FILE: changeFile };
  const env = { ...shared, ...files };
  let program: Program | undefined;
  let adminUrl = '';
  const programs: Program[] = [];
  let life: ProxyLife | undefined;
  let before: ProxyLife | undefined;
  let count = 0;
  return {
    life: () => life,
    async start() {
      const [port, adminPort] = [await freePort(), await freePort()];
      const writtenAt = statSync(snapshot, { throwIfNoEntry: false })?.mtimeMs;
      program = startMain({ ...env, PORT: String(port), ADMIN_PORT: String(adminPort) });
      programs.push(program);
      adminUrl = `http://127.0.0.1:${adminPort}`;
      while (!(await isReady(adminUrl))) {
        if (program.child.exitCode !== null) throw new Error(`a proxy ended by itself: ${program.stderr()}`);
        await pause(50);
      }
      const url = `http://127.0.0.1:${port}`;
      life = { name: `${letter}${++count}`, url, adminUrl, startedAt: Date.now(), isAlive: true, before };
      void noteJoined(life);
      if (writtenAt !== undefined) void noteRestored(life, { adminUrl, writtenAt });
    },
    async equalAudits() {
      const { text } = await ask(adminUrl, '/metrics').catch(() => ({ text: '' }));
      const counts = text.matchAll(/^handle_proxy_audit_total\{.*result="equal"\} (\d+)$/gm);
      return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
    },
    violations: () =>
      programs.flatMap(({ stdout }) =>
        stdout()
          .split('\n')
          .filter((line) => line.includes('older record served after an acknowledged write')),
      ),
    changed: () => linesOf(changeFile),
    async freeze(forMs) {
      program?.child.kill('SIGSTOP');
      await pause(forMs);
      program?.child.kill('SIGCONT');
    },
    async kill() {
      if (life) Object.assign(life, { isAlive: false, killedAt: Date.now() });
      before = life ?? before;
      life = undefined;
      program?.child.kill('SIGKILL');
      await program?.exited;
    },
  };
}

/** Waits until the metrics report restored entries, then sets `life.restored`. */
async function noteRestored(
  life: ProxyLife,
  { adminUrl, writtenAt }: { adminUrl: string; writtenAt: number },
): Promise<void> {
  while (life.isAlive) {
    const { text } = await ask(adminUrl, '/metrics').catch(() => ({ text: '' }));
    if (/restored_records_total\{source="snapshot"\} [1-9]/.test(text)) {
      life.restored = { at: Date.now(), writtenAt };
      return;
    }
    await pause(50);
  }
}

/** Waits until the metrics report a connected Redis, then sets `life.joinedAt`. */
async function noteJoined(life: ProxyLife): Promise<void> {
  while (life.isAlive) {
    const { text } = await ask(life.adminUrl, '/metrics').catch(() => ({ text: '' }));
    if (/^handle_proxy_redis_up 1$/m.test(text)) {
      life.joinedAt = Date.now();
      return;
    }
    await pause(50);
  }
}

const isReady = (adminUrl: string): Promise<boolean> =>
  ask(adminUrl, '/readyz').then(
    ({ status }) => status === 200,
    () => false,
  );
