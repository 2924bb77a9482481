// Puts load on a proxy: so many connections, each asking again when it is answered, until time or number is up.
import { Pool } from 'undici';
import { createPace } from './pace.js';

export interface LoadPlan {
  /** Where the paths begin, such as `http://127.0.0.1:8080`. */
  base: string;
  /** Asked for in turn. */
  paths: readonly string[];
  connections: number;
  durationMs: number;
  /** At most so many. */
  requests: number;
  /** At most so many a second; 0 is no limit. */
  rate: number;
  signal: AbortSignal;
}

export interface Load {
  seconds: number;
  latenciesMs: number[];
  statuses: Map<number, number>;
  /** Answered from a cache, as Cache-Status says. */
  hits: number;
  /** No connection, or broken off. */
  unanswered: number;
}

/** What is under way when the time is up may still take so long (ms). */
const GRACE_MS = 5000;

export async function runLoad(plan: LoadPlan): Promise<Load> {
  const { origin, pathname } = new URL(plan.base);
  const pool = new Pool(origin, { connections: plan.connections, pipelining: 1 });
  const load: Load = { seconds: 0, latenciesMs: [], statuses: new Map(), hits: 0, unanswered: 0 };
  const pace = createPace(plan.rate, plan.signal);
  const startedAt = performance.now();
  const endsAt = startedAt + plan.durationMs;
  const cut = setTimeout(() => void pool.destroy(), plan.durationMs + GRACE_MS);
  let asked = 0;
  const work = async (): Promise<void> => {
    for (;;) {
      await pace();
      if (plan.signal.aborted || asked >= plan.requests || performance.now() >= endsAt) return;
      const path = plan.paths[asked++ % plan.paths.length] ?? '';
      await askOnce(pool, pathname.replace(/\/$/, '') + path, load);
    }
  };
  await Promise.all(Array.from({ length: plan.connections }, work));
  load.seconds = (performance.now() - startedAt) / 1000;
  clearTimeout(cut);
  await pool.destroy();
  return load;
}

async function askOnce(pool: Pool, path: string, load: Load): Promise<void> {
  const askedAt = performance.now();
  try {
    const { statusCode, headers, body } = await pool.request({ path, method: 'GET' });
    await body.dump();
    load.latenciesMs.push(performance.now() - askedAt);
    load.statuses.set(statusCode, (load.statuses.get(statusCode) ?? 0) + 1);
    if (String(headers['cache-status']).includes('; hit')) load.hits++;
  } catch {
    load.unanswered++;
  }
}
