// Writes through two built proxies during a Redis outage, and measures how stale reads are.
import { expect } from 'vitest';
import { ask } from './ask.js';
import { type BuiltProxy, startConnectedProxy } from './built-proxy.js';
import { startDemoServer } from './demo.js';
import { numberIn, numbered, putNumbered } from './demo-writes.js';
import type { RedisServer } from './redis-server.js';
import { History, report } from './staleness.js';

export const DISCONNECTED_MAX_AGE_MS = 1000;
const HEARTBEAT_MS = 1000;
const COMMAND_TIMEOUT_MS = 50;
/** Time to detect an outage: a heartbeat interval and two command timeouts. */
const DETECTION_MS = HEARTBEAT_MS + 2 * COMMAND_TIMEOUT_MS;
/** Allowance for delays on a busy machine. */
const SLACK_MS = 400;
export const BOUND_MS = DISCONNECTED_MAX_AGE_MS + DETECTION_MS + SLACK_MS;

/**
 * Duration of the outage. `OUTAGE_SECONDS=10` measures the figures in src/cache/coherence/README.md; the
 * default suffices to detect a failure.
 */
const AWAY_MS = 1000 * Number(process.env['OUTAGE_SECONDS'] ?? '4');
const BEFORE_MS = 500;
const AFTER_MS = 2500;
const BUSY = Array.from({ length: 40 }, (_, at) => `21.T11998/busy-${at}`);
/** Handles read at one proxy before the outage, written there during it, and read everywhere afterwards. */
const QUIET = Array.from({ length: 10 }, (_, at) => `21.T11998/quiet-${at}`);

export interface Outage {
  name: string;
  redis: RedisServer;
  away: () => unknown;
  back: () => unknown;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Writes and reads before, during and after an outage. */
export async function writeThroughOutage({ name, redis, away, back }: Outage): Promise<void> {
  const demo = await startDemoServer();
  for (const handle of [...BUSY, ...QUIET]) demo.put(handle, numbered(0));
  // Starts the proxies half a heartbeat apart, so that one proxy reconnects before the other.
  const proxies = [await startOne(redis, demo.url), await startOne(redis, demo.url, HEARTBEAT_MS / 2)];
  const history = new History();
  const load = startLoad(proxies, history);
  const ownerOf = (at: number): string => proxies[at % proxies.length]!.url;
  await Promise.all(QUIET.map((handle, at) => load.read(ownerOf(at), handle)));
  await pause(BEFORE_MS);
  await away();
  await pause(AWAY_MS / 2);
  await Promise.all(QUIET.map((handle, at) => load.write(ownerOf(at), handle)));
  await pause(AWAY_MS / 2);
  await back();
  load.alsoRead.push(...QUIET);
  await pause(AFTER_MS);
  const made = await load.stop();
  const delays = history.delays();
  report(`Redis ${name} for ${AWAY_MS / 1000} s: old record still shown after the acknowledgement`, delays);
  expect(history.reads).toBeGreaterThan(500);
  for (const [handle, count] of made) {
    for (const { url } of proxies) {
      expect(numberIn(await ask(url, `/api/handles/${handle}`)), 'all agree in the end').toBe(count);
    }
  }
  expect(Math.max(...delays)).toBeLessThan(BOUND_MS);
}

async function startOne(redis: RedisServer, upstreamUrl: string, after = 0): Promise<BuiltProxy> {
  await pause(after);
  return startConnectedProxy({
    REDIS_URL: redis.url,
    UPSTREAM_URL: upstreamUrl,
    REDIS_DISCONNECTED_MAX_AGE: `${DISCONNECTED_MAX_AGE_MS}ms`,
    REDIS_COMMAND_TIMEOUT: `${COMMAND_TIMEOUT_MS}ms`,
  });
}

interface Load {
  /** Handles to read in addition to the busy handles. */
  alsoRead: string[];
  read: (url: string, handle: string) => Promise<number>;
  write: (url: string, handle: string) => Promise<void>;
  /** Stops the load, and resolves with the number of writes by handle. */
  stop: () => Promise<Map<string, number>>;
}

/**
 * Starts a writer that cycles through all handles and proxies, and a reader per proxy. Both pause to spare a
 * small machine.
 */
function startLoad(proxies: BuiltProxy[], history: History): Load {
  const alsoRead: string[] = [];
  const made = new Map<string, number>();
  let isRunning = true;
  const read = (url: string, handle: string): Promise<number> =>
    history.read(handle, async () => numberIn(await ask(url, `/api/handles/${handle}`)));
  const write = async (url: string, handle: string): Promise<void> => {
    const count = (made.get(handle) ?? 0) + 1;
    made.set(handle, count);
    const { status } = await putNumbered(url, `/api/handles/${handle}`, count);
    expect(status).toBe(200);
    history.acknowledged(handle, count);
  };
  const writeOn = async (): Promise<void> => {
    for (let turn = 0; isRunning; turn++) {
      await write(proxies[turn % 2]!.url, BUSY[(turn * 7) % BUSY.length]!);
      await pause(60);
    }
  };
  const readOn = async ({ url }: BuiltProxy): Promise<void> => {
    for (let turn = 0; isRunning; turn++) {
      const handles = [BUSY[turn % BUSY.length]!, BUSY[(turn * 3) % BUSY.length]!];
      if (alsoRead.length > 0) handles.push(alsoRead[turn % alsoRead.length]!);
      await Promise.all(handles.map((handle) => read(url, handle)));
      await pause(8);
    }
  };
  const running = Promise.all([writeOn(), ...proxies.map(readOn)]);
  const stop = async (): Promise<Map<string, number>> => {
    isRunning = false;
    await running;
    return made;
  };
  return { alsoRead, read, write, stop };
}
