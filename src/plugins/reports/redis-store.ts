// Resolution reports of all instances, summed in Redis.
import type { RedisCommands } from '../../cache/redis/commands.js';

/** Counts of names, of which only the most frequent are kept. */
export interface NameCounts {
  names: [name: string, count: number][];
  /** Maximum difference between a listed count and the exact count; 0 if all listed counts are exact. */
  maxError: number;
}

export interface PrefixCounts {
  /** Reads by interface, reads of unknown names, and reads by robots. */
  totals: Record<string, number>;
  handles: NameCounts;
  unknown: NameCounts;
}

/** Counts to be added to those of a prefix in a month. */
export interface CountedReads extends PrefixCounts {
  /** Month in UTC, such as `2026-11`. */
  month: string;
  /** In capitals, or OTHER_PREFIXES. */
  prefix: string;
}

/** Name of the row of all other prefixes, which equals no prefix, because prefixes are in capitals. */
export const OTHER_PREFIXES = 'other';

export const MAX_REPORTED_NAMES = 1000;

export interface ReportStore {
  /**
   * Adds counts. Returns whether they are certainly stored; otherwise repeat the call with the same
   * `sequence`, which must increase with each addition: an addition that was stored after all is not repeated.
   */
  add: (reads: CountedReads, sequence: number) => Promise<boolean>;
  save?: () => Promise<void>;
  /** Returns the sum of all additions; undefined while the store is unavailable. */
  read: (prefix: string, month: string) => Promise<PrefixCounts | undefined>;
}

/** Reports are kept for fourteen months. */
const LIFE_MS = 425 * 86_400_000;

/**
 * Adds counts. KEYS: the last sequence of the run, the prefixes of the month, then totals, handles and unknown
 * names of the prefix, and of OTHER_PREFIXES. ARGV: sequence, life (ms), prefix, maximum prefixes, maximum
 * names, counts (JSON). A name that is new to a full list replaces the rarest name and continues its count
 * (Space-Saving). An error in the middle undoes nothing. So the commands that add run without effect first, and what Redis
 * refuses (a right, a key of another type) adds nothing; any other error adds at most once, because the sequence is stored before.
 */
const ADD_READS = `
if tonumber(redis.call('GET', KEYS[1]) or '-1') >= tonumber(ARGV[1]) then return 0 end
local row = 3
if redis.call('SISMEMBER', KEYS[2], ARGV[3]) == 0 then
  if redis.call('SCARD', KEYS[2]) < tonumber(ARGV[4]) then redis.call('SADD', KEYS[2], ARGV[3]) else row = 6 end
end
local reads = cjson.decode(ARGV[6])
redis.call('HINCRBY', KEYS[row], 'handles.error', 0)
for at = 1, 2 do
  redis.call('ZADD', KEYS[row + at], 'XX', 'INCR', 0, '')
  redis.call('ZPOPMIN', KEYS[row + at], 0)
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
for field, count in pairs(reads.totals) do redis.call('HINCRBY', KEYS[row], field, count) end
local function addNames(key, field, list)
  redis.call('HINCRBY', KEYS[row], field .. '.error', list.maxError)
  local size = redis.call('ZCARD', key)
  for _, name in ipairs(list.names) do
    local count = name[2]
    if not redis.call('ZSCORE', key, name[1]) then
      if size < tonumber(ARGV[5]) then
        size = size + 1
      else
        local floor = redis.call('ZPOPMIN', key)[2]
        redis.call('HSET', KEYS[row], field .. '.floor', floor)
        count = count + tonumber(floor)
      end
    end
    redis.call('ZADD', key, 'INCR', count, name[1])
  end
end
addNames(KEYS[row + 1], 'handles', reads.handles)
addNames(KEYS[row + 2], 'unknown', reads.unknown)
for _, key in ipairs({ KEYS[2], KEYS[row], KEYS[row + 1], KEYS[row + 2] }) do
  redis.call('PEXPIRE', key, ARGV[2])
end
return 1`;

/** Creates a store in Redis. All keys of a month share a cluster slot. `runId` identifies this run of the instance. */
export function createReportStore(shared: RedisCommands, maxPrefixes: number, runId: string): ReportStore {
  const ofMonth = (month: string, name: string): string => `${shared.keyPrefix}{report:${month}}:${name}`;
  const rowOf = (prefix: string, month: string): [totals: string, handles: string, unknown: string] => [
    ofMonth(month, `totals:${prefix}`),
    ofMonth(month, `handles:${prefix}`),
    ofMonth(month, `unknown:${prefix}`),
  ];
  return {
    async add({ prefix, month, ...counts }, sequence) {
      const rows = [...rowOf(prefix, month), ...rowOf(OTHER_PREFIXES, month)];
      const keys = [ofMonth(month, `run:${runId}`), ofMonth(month, 'prefixes'), ...rows];
      const limits = [maxPrefixes, MAX_REPORTED_NAMES];
      const args = [sequence, LIFE_MS, prefix, ...limits, JSON.stringify(counts)];
      return (await shared.run('count', () => shared.script(ADD_READS, keys, args))) !== undefined;
    },
    async read(prefix, month) {
      const [totals, handles, unknown] = rowOf(prefix, month);
      const found = await shared.run('count', (redis) =>
        Promise.all([
          redis.hgetall(totals),
          redis.zrevrange(handles, 0, -1, 'WITHSCORES'),
          redis.zrevrange(unknown, 0, -1, 'WITHSCORES'),
        ]),
      );
      return found && countsIn(...found);
    },
  };
}

function countsIn(
  row: Readonly<Record<string, string>>,
  handles: readonly string[],
  unknown: readonly string[],
): PrefixCounts {
  const fields = Object.entries(row).map(([field, count]) => [field, Number(count)] as const);
  const errorOf = (list: string): number =>
    fields.reduce((sum, [field, count]) => (field.startsWith(`${list}.`) ? sum + count : sum), 0);
  return {
    totals: Object.fromEntries(fields.filter(([field]) => !field.includes('.'))),
    handles: { names: pairsOf(handles), maxError: errorOf('handles') },
    unknown: { names: pairsOf(unknown), maxError: errorOf('unknown') },
  };
}

/** Pairs members with their scores, which alternate in a reply. */
const pairsOf = (reply: readonly string[]): NameCounts['names'] =>
  Array.from({ length: reply.length / 2 }, (_, at) => [reply[2 * at] ?? '', Number(reply[2 * at + 1])]);
