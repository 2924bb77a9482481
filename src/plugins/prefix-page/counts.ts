// Counts the reads of the listed prefixes by month, and adds them to those of all instances in Redis.
import type { RedisCommands } from '../../cache/redis/commands.js';
import type { Host } from '../../host.js';

type CountKind = 'found' | 'unknown' | 'failed' | 'current' | 'outdated';
type CountRow = Partial<Record<CountKind, number>> & { since: number };

interface CountedMonth {
  /** In UTC, such as `2026-11`. */
  month: string;
  /** Counts of each prefix by kind; `since` is the start of counting (ms). */
  rows: ReadonlyMap<string, CountRow>;
}

export interface PrefixMonth {
  prefix: string;
  month: string;
  instances: 'all' | 'this';
  /** Counts by kind, as numbers or as Redis sends them. */
  row: Readonly<Partial<Record<CountKind | 'since', string | number>>>;
}

const LIFE_MS = 62 * 86_400_000;
/** Maximum months that wait for Redis; more than two only if the clock is set meanwhile. */
const MAX_UNSENT = 12;

/** Adds rows unless they are added already. KEYS: the run, rows. ARGV: sequence of the run, life (ms), rows (JSON). */
const ADD_ROWS = `
if tonumber(redis.call('GET', KEYS[1]) or '-1') >= tonumber(ARGV[1]) then return 0 end
for at, row in ipairs(cjson.decode(ARGV[3])) do
  for field, value in pairs(row) do
    redis.call(field == 'since' and 'HSETNX' or 'HINCRBY', KEYS[at + 1], field, value)
  end
  redis.call('PEXPIRE', KEYS[at + 1], ARGV[2])
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`;

export type PageCounts = ReturnType<typeof createPageCounts>;

export function createPageCounts(prefixes: readonly string[], { clock, cache }: Host) {
  const { commands: shared } = cache;
  const startedAt = clock.monotonic();
  const unsent: CountedMonth[] = [];
  const send = shared && createSend(shared, clock.randomId(), unsent);
  let counted = startCounting(0);
  let published = Promise.resolve();

  function startCounting(elapsedMs = clock.monotonic() - startedAt): CountedMonth {
    const now = clock.wall();
    const month = new Date(now).toISOString().slice(0, 7);
    // The wall clock may have been set since the start.
    const since = Math.max(Date.parse(month), Math.round(now - elapsedMs));
    return { month, rows: new Map(prefixes.map((prefix) => [prefix, { since }])) };
  }

  function endCounting(): void {
    unsent.push(counted);
    unsent.splice(MAX_UNSENT);
    counted = startCounting();
  }

  async function publishAll(): Promise<void> {
    const { month } = startCounting();
    if (month !== counted.month) endCounting();
    if (send === undefined || !(await send())) return;
    endCounting();
    await send();
  }

  return {
    add(prefix: string, kind: CountKind): void {
      const row = counted.rows.get(prefix);
      if (row !== undefined) row[kind] = (row[kind] ?? 0) + 1;
    },
    /** Sends the counts to Redis. While it is unavailable they are kept, for a later call. */
    publish: (): Promise<void> => (published = published.then(publishAll)),
    has: (prefix: string): boolean => counted.rows.has(prefix),
    /** Returns undefined while Redis is unavailable. */
    async read(prefix: string): Promise<PrefixMonth | undefined> {
      const { month, rows } = counted;
      if (shared === undefined) return { prefix, month, instances: 'this', row: rows.get(prefix) ?? {} };
      const row = await shared.run('count', (redis) => redis.hgetall(redisKeyOf(shared, month, prefix)));
      return row && { prefix, month, instances: 'all', row };
    },
  };
}

/** Creates the function that sends `unsent` in order, and removes what Redis has confirmed; returns whether it is all. */
function createSend(shared: RedisCommands, runId: string, unsent: CountedMonth[]) {
  let sequence = 0;
  return async function send(): Promise<boolean> {
    for (let [first] = unsent; first !== undefined; [first] = unsent) {
      const { month, rows } = first;
      const names = [...rows.keys()].map((prefix) => redisKeyOf(shared, month, prefix));
      const args = [sequence, LIFE_MS, JSON.stringify([...rows.values()])];
      // Without a reply it is repeated unchanged, because Redis may have executed it.
      const added = await shared.run('count', () =>
        shared.script(ADD_ROWS, [redisKeyOf(shared, 'run', runId), ...names], args),
      );
      if (added === undefined) return false;
      unsent.shift();
      sequence++;
    }
    return true;
  };
}

/** All keys share a cluster slot. */
const redisKeyOf = ({ keyPrefix }: RedisCommands, ...names: string[]): string =>
  `${keyPrefix}{prefix-page}:${names.join(':')}`;
