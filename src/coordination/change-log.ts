// An append-only log of recent changes: a Redis stream shared by all instances, or local memory.
import type { RedisCommands } from '../cache/redis/commands.js';

export interface LogEntry {
  /** `<epoch>-<number>`. Numbers are consecutive; after a loss, the log starts a later epoch. */
  id: string;
  line: string;
}

interface LogBatch {
  /** If preceding entries were lost, the first entry is a gap that has the id passed to `read`. */
  entries: LogEntry[];
  /** Minimum number of lost entries. */
  missed: number;
}

export interface ChangeLog {
  /** Appends lines. @throws Error when Redis does not confirm the append, which may have succeeded */
  append: (lines: readonly string[]) => Promise<void>;
  /** Reads up to 100 entries after an id; undefined while Redis is unavailable. */
  read: (after: string) => Promise<LogBatch | undefined>;
  /** Returns the id of the last entry; undefined while Redis is unavailable. */
  tail: () => Promise<string | undefined>;
  /**
   * Acquires or renews the webhook's reader lease, and stores the last acknowledged id. Returns the stored id;
   * undefined while a different instance holds the lease, or while Redis is unavailable.
   */
  claimReader: (owner: string, acknowledged: string | undefined) => Promise<string | undefined>;
}

/** Precedes the id of every entry. */
const START = '0-0';
const BATCH = 100;
/** Reader lease: longer than a webhook request, so that the lease does not expire during a request. */
const READER_MS = 15_000;

const positionOf = (id: string): number[] => id.split('-').map(Number);

function isBefore(one: string, other: string): boolean {
  const [[epoch = 0, number = 0], [otherEpoch = 0, otherNumber = 0]] = [positionOf(one), positionOf(other)];
  return epoch < otherEpoch || (epoch === otherEpoch && number < otherNumber);
}

/** Returns the minimum number of entries lost between two ids. */
function missedBetween(after: string, next: string): number {
  const [[epoch = 0, number = 0], [nextEpoch = 0, nextNumber = 0]] = [positionOf(after), positionOf(next)];
  if (epoch === nextEpoch) return nextNumber - number - 1;
  return after === START ? nextNumber - 1 : nextNumber;
}

interface ChangeLogDeps {
  maxEntries: number;
  now: () => number;
  /** Formats the line that replaces lost entries. */
  formatGap: (missed: number) => string;
}

function toBatch(after: string, entries: LogEntry[], { formatGap }: ChangeLogDeps): LogBatch {
  const missed = entries[0] === undefined ? 0 : missedBetween(after, entries[0].id);
  return { missed, entries: missed > 0 ? [{ id: after, line: formatGap(missed) }, ...entries] : entries };
}

function createLocalChangeLog(deps: ChangeLogDeps): ChangeLog {
  const { maxEntries } = deps;
  const epoch = deps.now();
  const lines: string[] = [];
  let removed = 0;
  let cursor = START;
  return {
    append(added) {
      lines.push(...added);
      // Removes a tenth at a time, because each removal shifts all remaining lines.
      if (lines.length > 1.1 * maxEntries) removed += lines.splice(0, lines.length - maxEntries).length;
      return Promise.resolve();
    },
    read(after) {
      const [given, number = 0] = positionOf(after);
      const from = given === epoch ? Math.max(0, number - removed) : 0;
      const entries = lines
        .slice(from, from + BATCH)
        .map((line, at) => ({ id: `${epoch}-${removed + from + at + 1}`, line }));
      return Promise.resolve(toBatch(after, entries, deps));
    },
    tail: () => Promise.resolve(`${epoch}-${removed + lines.length}`),
    claimReader: (_owner, acknowledged) => Promise.resolve((cursor = acknowledged ?? cursor)),
  };
}

/**
 * Appends lines. KEYS: the stream. ARGV: its maximum length, now, the Redis run id, lines. A different run id
 * starts a new epoch, because Redis may have lost entries. The trim is first, because a full Redis (noeviction)
 * rejects a script whose first write needs memory.
 */
const APPEND = `
redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', ARGV[1])
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local epoch, number = 0, 0
if last then
  local first, second = string.match(last[1], '(%d+)-(%d+)')
  epoch, number = tonumber(first), tonumber(second)
end
if not last or last[2][2] ~= ARGV[3] then
  epoch, number = math.max(tonumber(ARGV[2]), epoch + 1), 0
end
for i = 4, #ARGV do
  number = number + 1
  redis.call('XADD', KEYS[1], string.format('%.0f-%.0f', epoch, number), 'run', ARGV[3], 'line', ARGV[i])
end
return number`;

/** KEYS: the lease owner, the acknowledged id. ARGV: an instance, the lease (ms), a new acknowledged id or ''. */
const CLAIM_READER = `
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return nil end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if owner and ARGV[3] ~= '' then redis.call('SET', KEYS[2], ARGV[3]) end
return redis.call('GET', KEYS[2]) or '${START}'`;

type StreamEntry = [id: string, fields: string[]];

const toEntry = ([id, [, , , line = '']]: StreamEntry): LogEntry => ({ id, line });

type SharedCommands = Pick<RedisCommands, 'run' | 'runOf' | 'script' | 'keyPrefix'>;

function createSharedChangeLog(deps: ChangeLogDeps, shared: SharedCommands): ChangeLog {
  // Read for each command, because the prefix may change while commands are paused.
  const stream = (): string => `${shared.keyPrefix}{changes}`;
  const readAfter = (id: string) =>
    shared.run('changes', async (redis) => {
      const reading = redis.xread('COUNT', BATCH, 'STREAMS', stream(), id);
      const [reply, [last]] = await Promise.all([reading, redis.xrevrange(stream(), '+', '-', 'COUNT', 1)]);
      return { entries: reply?.[0]?.[1].map(toEntry) ?? [], last: last?.[0] ?? START };
    });
  return {
    async append(lines) {
      const run = shared.runOf(stream());
      const append = () =>
        shared.script(APPEND, [stream()], [deps.maxEntries, deps.now(), run ?? '', ...lines]);
      const number = run === undefined ? undefined : await shared.run('changes', append);
      if (number === undefined) throw new Error('redis is unavailable');
    },
    async read(after) {
      const found = await readAfter(after);
      // The stream was lost, and restarted by an instance whose clock is behind.
      const isLost = found !== undefined && isBefore(found.last, after);
      const { entries } = (isLost ? await readAfter(START) : found) ?? {};
      return entries && toBatch(after, entries, deps);
    },
    tail: async () => (await readAfter(START))?.last,
    async claimReader(owner, acknowledged = '') {
      const keys = [`${stream()}:reader`, `${stream()}:acknowledged`];
      const reply = await shared.run('changes', () =>
        shared.script(CLAIM_READER, keys, [owner, READER_MS, acknowledged]),
      );
      return typeof reply === 'string' ? reply : undefined;
    },
  };
}

/** Creates the log: in Redis if it is configured, otherwise in memory. */
export const createChangeLog = (deps: ChangeLogDeps, shared: SharedCommands | undefined): ChangeLog =>
  shared ? createSharedChangeLog(deps, shared) : createLocalChangeLog(deps);
