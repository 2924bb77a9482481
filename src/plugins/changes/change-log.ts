// An append-only log of recent changes: a Redis stream shared by all instances, or local memory.
import type { Cache } from '../../cache/cache.js';
import type { RedisCommands } from '../../cache/redis/commands.js';

export interface LogEntry {
  /** `<epoch>-<number>`. Numbers are consecutive; entry 1 of an epoch is a gap, because entries may be lost. */
  id: string;
  line: string;
}

interface LogBatch {
  /** If preceding entries were trimmed, the first entry is a gap that has the id passed to `read`. */
  entries: LogEntry[];
  /** Minimum number of trimmed entries. */
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

/** Returns the minimum number of entries trimmed between two ids. A new epoch reports its gap itself. */
function missedBetween(after: string, next: string): number {
  const [[epoch = 0, number = 0], [nextEpoch = 0, nextNumber = 0]] = [positionOf(after), positionOf(next)];
  return nextNumber - 1 - (epoch === nextEpoch ? number : 0);
}

/** Formats the line that replaces lost entries; 0 if it is unknown whether entries were lost. */
type FormatGap = (missed: number) => string;

function toBatch(after: string, entries: LogEntry[], formatGap: FormatGap): LogBatch {
  const missed = entries[0] === undefined ? 0 : missedBetween(after, entries[0].id);
  return { missed, entries: missed > 0 ? [{ id: after, line: formatGap(missed) }, ...entries] : entries };
}

export const lineChars = (lines: readonly string[]): number =>
  lines.reduce((sum, { length }) => sum + length, 0);

/** Bounds of retained lines; in Redis, `maxChars` counts bytes, and the last hundred entries or so stay in any case. */
interface LineBounds {
  maxEntries: number;
  maxChars: number;
}

/** Returns how many of the oldest lines, which have `chars` characters together, exceed the bounds. */
export function countExcess(
  lines: readonly string[],
  chars: number,
  { maxEntries, maxChars }: LineBounds,
): number {
  let excess = Math.max(0, lines.length - maxEntries);
  let left = chars - lineChars(lines.slice(0, excess));
  while (left > maxChars) left -= lines[excess++]?.length ?? 0;
  return excess;
}

function createLocalChangeLog(bounds: LineBounds, now: () => number, formatGap: FormatGap): ChangeLog {
  const epoch = now();
  const lines = [formatGap(0)];
  let chars = lineChars(lines);
  let removed = 0;
  let cursor = START;
  return {
    append(added) {
      lines.push(...added);
      chars += lineChars(added);
      // Removes a tenth at a time, because each removal shifts all remaining lines.
      if (lines.length > 1.1 * bounds.maxEntries || chars > 1.1 * bounds.maxChars) {
        const oldest = lines.splice(0, countExcess(lines, chars, bounds));
        chars -= lineChars(oldest);
        removed += oldest.length;
      }
      return Promise.resolve();
    },
    read(after) {
      const [given, number = 0] = positionOf(after);
      const from = given === epoch ? Math.max(0, number - removed) : 0;
      const entries = lines
        .slice(from, from + BATCH)
        .map((line, at) => ({ id: `${epoch}-${removed + from + at + 1}`, line }));
      return Promise.resolve(toBatch(after, entries, formatGap));
    },
    tail: () => Promise.resolve(`${epoch}-${removed + lines.length}`),
    claimReader: (_owner, acknowledged) => Promise.resolve((cursor = acknowledged ?? cursor)),
  };
}

/**
 * Appends lines, and returns 1. KEYS: the stream. ARGV: its maximum length, the maximum bytes of its lines, the Redis run id, the
 * era if the instance has entered it since its last append, otherwise '', a gap, lines. Each entry has the sum of the bytes so
 * far, so that two entries show how many are held: with too many, the share of entries that may stay. A different run or era starts a
 * new epoch, because Redis may have lost entries. An instance that stays in an earlier era starts none, or it
 * would alternate with the others. An epoch is named by the Redis clock (ms): the clocks of instances may
 * differ, and two epochs with one name would hide the gap. The trim is first, because a full Redis
 * (noeviction) rejects a script whose first write needs memory.
 */
const APPEND = `
local time = redis.call('TIME')
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local epoch, number, run, era, sum = 0, 0, '', '', 0
local maxEntries, maxBytes = tonumber(ARGV[1]), tonumber(ARGV[2])
if last then
  local first, second = string.match(last[1], '(%d+)-(%d+)')
  epoch, number, run, era = tonumber(first), tonumber(second), last[2][2], last[2][6] or ''
  sum = tonumber(last[2][8] or 0)
  local oldest = redis.call('XREAD', 'COUNT', 1, 'STREAMS', KEYS[1], '0-0')[1][2][1]
  local held = sum - tonumber(oldest[2][8] or 0)
  if held > maxBytes then
    maxEntries = math.min(maxEntries, math.floor(redis.call('XLEN', KEYS[1]) * maxBytes / held))
  end
end
redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', maxEntries)
local function add(line)
  number, sum = number + 1, sum + #line
  local id = string.format('%.0f-%.0f', epoch, number)
  redis.call('XADD', KEYS[1], id, 'run', ARGV[3], 'line', line, 'era', era, 'sum', string.format('%.0f', sum))
end
if run ~= ARGV[3] or (ARGV[4] ~= '' and ARGV[4] ~= era) then
  epoch, number = math.max(time[1] * 1000 + math.floor(time[2] / 1000), epoch + 1), 0
  if ARGV[4] ~= '' then era = ARGV[4] end
  add(ARGV[5])
end
for i = 6, #ARGV do add(ARGV[i]) end
return 1`;

/** KEYS: the lease owner, the acknowledged id. ARGV: an instance, the lease (ms), a new acknowledged id or ''. */
const CLAIM_READER = `
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return nil end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if owner and ARGV[3] ~= '' then redis.call('SET', KEYS[2], ARGV[3]) end
return redis.call('GET', KEYS[2]) or '${START}'`;

const toEntry = ([id, [, , , line = '']]: [id: string, fields: string[]]): LogEntry => ({ id, line });

function createSharedChangeLog(
  { maxEntries, maxChars }: LineBounds,
  formatGap: FormatGap,
  shared: RedisCommands,
  era: Cache['era'],
): ChangeLog {
  /** The era in which this instance has appended, or has started an epoch. */
  let knownEra: string | undefined;
  // Read for each command, because the prefix may change while commands are paused.
  const stream = (): string => `${shared.keyPrefix}{changes}`;
  async function append(lines: readonly string[]): Promise<void> {
    const [run, name] = [shared.runOf(stream()), era()?.name];
    // The server may lack entries of a different master until this instance has entered its era.
    if (run === undefined || name === undefined) throw new Error('redis is unavailable');
    const args = [maxEntries, maxChars, run, name === knownEra ? '' : name, formatGap(0)];
    const done = await shared.run('changes', () => shared.script(APPEND, [stream()], [...args, ...lines]));
    if (done === undefined) throw new Error('redis is unavailable');
    knownEra = name;
  }
  /** Starts an epoch if one is due, so that readers learn of a loss without waiting for the next change. */
  const startEpoch = (): Promise<void> => append([]).catch(() => undefined);
  const enterEra = async (): Promise<void> => {
    if (era()?.name !== knownEra) await startEpoch();
  };
  const readAfter = (id: string) =>
    shared.run('changes', async (redis) => {
      const reading = redis.xread('COUNT', BATCH, 'STREAMS', stream(), id);
      const [reply, [last]] = await Promise.all([reading, redis.xrevrange(stream(), '+', '-', 'COUNT', 1)]);
      return { entries: reply?.[0]?.[1].map(toEntry) ?? [], last: last?.[0] ?? START };
    });
  return {
    append,
    async read(after) {
      await enterEra();
      const found = await readAfter(after);
      // The stream was lost, and possibly restarted on a server whose clock is behind.
      const isLost = found !== undefined && isBefore(found.last, after);
      // The epoch that is due in an era still to be entered saves the reader all retained entries.
      if (isLost && era() === undefined) return undefined;
      if (isLost) await startEpoch();
      const { entries } = (isLost ? await readAfter(START) : found) ?? {};
      return entries && toBatch(after, entries, formatGap);
    },
    async tail() {
      await enterEra();
      return (await readAfter(START))?.last;
    },
    async claimReader(owner, acknowledged = '') {
      const keys = [`${stream()}:reader`, `${stream()}:acknowledged`];
      const reply = await shared.run('changes', () =>
        shared.script(CLAIM_READER, keys, [owner, READER_MS, acknowledged]),
      );
      return typeof reply === 'string' ? reply : undefined;
    },
  };
}

export const createChangeLog = (
  { commands, era }: Cache,
  bounds: LineBounds,
  now: () => number,
  formatGap: FormatGap,
): ChangeLog =>
  commands
    ? createSharedChangeLog(bounds, formatGap, commands, era)
    : createLocalChangeLog(bounds, now, formatGap);
