// Counts the reads of the listed prefixes by day, and adds them to those of all instances in Redis.
import type { RedisCommands } from '../../cache/redis/commands.js';
import type { Host } from '../../host.js';

interface CountedMonth {
  /** In UTC, such as `2026-11`. */
  month: string;
  /** Counts of each prefix by day and kind, such as `28.found`; `since` is the start of counting (ms). */
  rows: ReadonlyMap<string, Record<string, number>>;
}

export interface PrefixMonth {
  prefix: string;
  month: string;
  instances: 'all' | 'this';
  /** Counts by day and kind, as numbers or as Redis sends them. */
  row: Readonly<Record<string, string | number>>;
}

/** Returns the fields of a day, such as `28`. */
const fieldsOf = (day: string) => ({
  found: `${day}.found`,
  unknown: `${day}.unknown`,
  failed: `${day}.failed`,
  current: `${day}.current`,
  outdated: `${day}.outdated`,
});

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
  let fields = fieldsOf('');
  let counted = startCounting();
  let published = Promise.resolve();

  /** Returns new rows. Counts until the next call are those of the day of this call. */
  function startCounting(): CountedMonth {
    const now = clock.wall();
    const date = new Date(now).toISOString();
    fields = fieldsOf(date.slice(8, 10));
    const month = date.slice(0, 7);
    // The wall clock may have been set since the start.
    const since = Math.max(Date.parse(month), Math.round(now - (clock.monotonic() - startedAt)));
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
    add(prefix: string, kind: keyof typeof fields): void {
      const row = counted.rows.get(prefix);
      if (row !== undefined) row[fields[kind]] = (row[fields[kind]] ?? 0) + 1;
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
