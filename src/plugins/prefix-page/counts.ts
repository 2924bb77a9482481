// Counts the reads of the listed prefixes by month, and adds them to those of all instances in Redis.
import type { RedisCommands } from '../../cache/redis/commands.js';
import type { Host } from '../../host.js';
import { ServiceError } from '../../errors.js';
import { ERRORS } from './plugin.js';

type CountKind = 'found' | 'unknown' | 'failed' | 'current' | 'outdated';

/** Counts of a prefix, and the start of counting (ms): as numbers, or as Redis sends them. */
type CountRow<Count = number> = Partial<Record<CountKind | 'since', Count>>;

interface CountedMonth {
  /** In UTC, such as `2026-11`. */
  month: string;
  /** Increases during a run. */
  sequence: number;
  rows: ReadonlyMap<string, CountRow>;
}

const LIFE_MS = 62 * 86_400_000;
/** Maximum months that wait for Redis; more than two only if the clock is set meanwhile. */
const MAX_UNSENT = 12;

/**
 * Adds rows unless they are added already. KEYS: the run, rows. ARGV: sequence of the run, life (ms), rows (JSON). An error
 * in the middle undoes nothing, so zeros are added first: what Redis refuses adds nothing.
 */
const ADD_ROWS = `
if tonumber(redis.call('GET', KEYS[1]) or '-1') >= tonumber(ARGV[1]) then return 0 end
local rows = cjson.decode(ARGV[3])
local function add(times)
  for at, row in ipairs(rows) do
    redis.call('HSETNX', KEYS[at + 1], 'since', row.since)
    for field, count in pairs(row) do
      if field ~= 'since' then redis.call('HINCRBY', KEYS[at + 1], field, count * times) end
    end
    redis.call('PEXPIRE', KEYS[at + 1], ARGV[2])
  end
end
add(0)
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
add(1)
return 1`;

export type PageCounts = ReturnType<typeof createPageCounts>;

export function createPageCounts(prefixes: readonly string[], { clock, cache: { commands: shared } }: Host) {
  const startedAt = clock.monotonic();
  const runId = clock.randomId();
  const unsent: CountedMonth[] = [];
  let sequence = 0;
  let counted = startCounting(0);
  let published = Promise.resolve();

  function startCounting(elapsedMs = clock.monotonic() - startedAt): CountedMonth {
    const now = clock.wall();
    const month = new Date(now).toISOString().slice(0, 7);
    // The wall clock may have been set since the start.
    const since = Math.max(Date.parse(month), Math.round(now - elapsedMs));
    return { month, sequence: sequence++, rows: new Map(prefixes.map((prefix) => [prefix, { since }])) };
  }

  function endCounting(): void {
    unsent.push(counted);
    unsent.splice(MAX_UNSENT);
    counted = startCounting();
  }

  async function publishAll(): Promise<void> {
    if (startCounting().month !== counted.month) endCounting();
    // During an outage the counts of a month are added up.
    if (shared === undefined || !(await sendAll(shared))) return;
    endCounting();
    await sendAll(shared);
  }

  /** Sends in order; returns whether Redis has confirmed all. */
  async function sendAll(commands: RedisCommands): Promise<boolean> {
    while (unsent[0] !== undefined && (await addRows(commands, runId, unsent[0]))) unsent.shift();
    return unsent.length === 0;
  }

  return {
    add(prefix: string, kind: CountKind): void {
      const row = counted.rows.get(prefix);
      if (row !== undefined) row[kind] = (row[kind] ?? 0) + 1;
    },
    /** Sends the counts to Redis. While it is unavailable they are kept, for a later call. */
    publish: (): Promise<void> => (published = published.then(publishAll)),
    /** @throws ServiceError PREFIX_PAGE_UNKNOWN, PREFIX_PAGE_UNAVAILABLE */
    async read(prefix: string) {
      const { month, rows } = counted;
      const own = rows.get(prefix);
      if (own === undefined) throw new ServiceError(ERRORS.PREFIX_PAGE_UNKNOWN);
      const row =
        shared === undefined
          ? own
          : await shared.run('count', (redis) => redis.hgetall(redisKeyOf(shared, month, prefix)));
      if (row === undefined) throw new ServiceError(ERRORS.PREFIX_PAGE_UNAVAILABLE, { retryAfterMs: 1000 });
      return { prefix, month, instances: shared === undefined ? 'this' : 'all', ...figuresOf(row) };
    },
  };
}

/** Returns whether Redis confirms it. If not, repeat it unchanged, because Redis may have executed it. */
async function addRows(shared: RedisCommands, runId: string, { month, sequence, rows }: CountedMonth) {
  const names = [...rows.keys()].map((prefix) => redisKeyOf(shared, month, prefix));
  const keys = [redisKeyOf(shared, 'run', runId), ...names];
  const args = [sequence, LIFE_MS, JSON.stringify([...rows.values()])];
  return (await shared.run('count', () => shared.script(ADD_ROWS, keys, args))) !== undefined;
}

/** All keys share a cluster slot. */
const redisKeyOf = ({ keyPrefix }: RedisCommands, ...names: string[]): string =>
  `${keyPrefix}{prefix-page}:${names.join(':')}`;

/** Fractions are null if there is nothing to divide, and rounded down to four digits, so that 1 means all. */
export function figuresOf(row: Readonly<CountRow<string | number>>) {
  const countOf = (kind: CountKind): number => Number(row[kind] ?? 0);
  const resolutions = countOf('found') + countOf('unknown');
  const compared = countOf('current') + countOf('outdated');
  return {
    countedSince: row.since === undefined ? null : new Date(Number(row.since)).toISOString(),
    resolutions,
    found: countOf('found'),
    failed: countOf('failed'),
    availability: fractionOf(resolutions, resolutions + countOf('failed')),
    compared,
    fresh: fractionOf(countOf('current'), compared),
  };
}

const fractionOf = (part: number, all: number): number | null =>
  all === 0 ? null : Math.floor((part / all) * 10_000) / 10_000;
