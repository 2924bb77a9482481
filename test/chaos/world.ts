// Runs two built proxies on one Redis in front of a demo server, and injects faults.
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DemoServer, createDemoServer } from '../../src/dev-server/server.js';
import { ask } from '../support/ask.js';
import { type Program, startMain } from '../support/built-proxy.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import type { Event } from './plan.js';
import { freePort } from '../support/free-port.js';

export interface ProxyLife {
  /** Unique name for each start of a proxy. */
  name: string;
  url: string;
  startedAt: number;
  /** False from just before the kill. */
  isAlive: boolean;
  /** Previous life of the same proxy. */
  before: ProxyLife | undefined;
  /** Times at which the snapshot was read and written; undefined until it was read. */
  restored?: { at: number; writtenAt: number };
}

export interface World {
  demo: DemoServer;
  /** Returns the running proxies. */
  lives: () => ProxyLife[];
  strike: (event: Event) => Promise<void>;
  wasRedisTroubled: Troubles['were'];
  /** Whether a proxy was frozen at any time in the period. */
  wasFrozen: Troubles['were'];
  /** Returns how many staleness audits of the running proxies had the result `equal`. */
  equalAudits: () => Promise<number>;
  /** Returns the log lines, from all proxies, that report an older record after an acknowledged write. */
  violations: () => string[];
  close: () => Promise<void>;
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
  UPSTREAM_BREAKER_OPEN_FOR: '500ms',
  CACHE_NOT_FOUND_TTL: '2s',
  DELETION_HANDLES: 'true',
  AUDIT_HITS: '0.5',
  AUDIT_WRITES: '1',
};

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function startWorld(
  onKilled: (life: string) => void,
  seed: (demo: DemoServer) => void,
): Promise<World> {
  const demo = createDemoServer({});
  const { url: upstreamUrl } = await demo.listen(0);
  seed(demo);
  const redis = await startRedis();
  const troubles = createTroubles(SETTLE_MS);
  const frozen = createTroubles(THAW_MS);
  const env = { ...ENVIRONMENT, UPSTREAM_URL: upstreamUrl, REDIS_URL: redis.url };
  const folder = mkdtempSync(join(tmpdir(), 'chaos-'));
  // A killed proxy restarts from its last snapshot.
  const proxies = ['a', 'b'].map((letter) => {
    const snapshot = join(folder, letter);
    return createProxy(
      letter,
      { ...env, CACHE_SNAPSHOT_FILE: snapshot, CACHE_SNAPSHOT_EVERY: '1s' },
      snapshot,
    );
  });
  await Promise.all(proxies.map((proxy) => proxy.start()));
  const close = async (): Promise<void> => {
    redis.thaw();
    await Promise.all([...proxies.map((proxy) => proxy.kill()), redis.stop(), demo.close()]);
    rmSync(folder, { recursive: true, force: true });
  };
  return {
    demo,
    lives: () => proxies.flatMap(({ life }) => life() ?? []),
    wasRedisTroubled: troubles.were,
    wasFrozen: frozen.were,
    async equalAudits() {
      const counts = await Promise.all(proxies.map((proxy) => proxy.equalAudits()));
      return counts.reduce((sum, count) => sum + count, 0);
    },
    violations: () => proxies.flatMap((proxy) => proxy.violations()),
    async strike(event) {
      switch (event.what) {
        case 'upstream':
          if (event.fault === 'slow') demo.delay(1500);
          else demo.fail(event.fault);
          await pause(event.forMs);
          demo.heal();
          break;
        case 'redis':
          await troubles.during(() => strikeRedis(redis, event));
          break;
        case 'proxy':
          if (event.how === 'kill') await strikeDown(proxies[event.at]!, event.forMs, onKilled);
          else await frozen.during(() => proxies[event.at]!.freeze(event.forMs));
      }
    },
    close,
  };
}

async function strikeDown(proxy: Proxy, forMs: number, onKilled: (life: string) => void): Promise<void> {
  const name = proxy.life()?.name;
  await proxy.kill();
  if (name !== undefined) onKilled(name);
  await pause(forMs);
  await proxy.start();
}

async function strikeRedis(
  redis: RedisServer,
  { how, forMs }: { how: 'freeze' | 'kill'; forMs: number },
): Promise<void> {
  if (how === 'freeze') {
    redis.freeze();
    await pause(forMs);
    redis.thaw();
  } else {
    await redis.stop();
    await pause(forMs);
    await redis.restart();
  }
}

interface Troubles {
  were: (fromMs: number, toMs: number) => boolean;
  during: (trouble: () => Promise<void>) => Promise<void>;
}

/** Records periods of trouble, each extended by `settleMs`. */
function createTroubles(settleMs: number): Troubles {
  const troubles: { from: number; to: number }[] = [];
  return {
    // Extends periods into the past too, because a message may be in flight when Redis freezes.
    were: (fromMs, toMs) => troubles.some(({ from, to }) => fromMs < to && toMs > from - settleMs),
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
}

function createProxy(letter: string, env: Record<string, string>, snapshot: string): Proxy {
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
      life = { name: `${letter}${++count}`, url, startedAt: Date.now(), isAlive: true, before };
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
    async freeze(forMs) {
      program?.child.kill('SIGSTOP');
      await pause(forMs);
      program?.child.kill('SIGCONT');
    },
    async kill() {
      if (life) life.isAlive = false;
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

const isReady = (adminUrl: string): Promise<boolean> =>
  ask(adminUrl, '/readyz').then(
    ({ status }) => status === 200,
    () => false,
  );
