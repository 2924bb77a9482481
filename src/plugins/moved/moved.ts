// Answers for moved handles before their repository, and reads the table again when its file has changed.
import { readFileSync, statSync, type Stats } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { onceAMinute, oneAtATime, repeat } from '../../clock.js';
import { errorText } from '../../errors.js';
import type { Outcome } from '../../handle/outcome.js';
import type { HandleRef } from '../../handle/handle.js';
import type { Host, PurgeRequest } from '../../host.js';
import type { Started } from '../../plugin.js';
import { type Steps, groupsOf, runToEnd } from '../../time-slicer.js';
import { fillAddress, urlRecord } from '../../upstream/url-record.js';
import { type MovedConfig, createTableReader } from './plugin.js';
import { type MovedTable, type TableChanges, changesBetween, sizeProblem } from './table.js';

/** The usual index of a URL value. The TTL bounds how long a line counts that was removed while no instance ran. */
const VALUE = { index: 1, ttl: 3600 };

/** Handles of one purge, which is one step of the change feed. */
const PURGED = 1000;

interface PreparedTable {
  table: MovedTable;
  /** The new URLs by the cache key of the handle. */
  urlOf: ReadonlyMap<string, string>;
}

const NO_TABLE: PreparedTable = { table: { handles: new Map(), prefixes: new Map() }, urlOf: new Map() };

/** A table that replaces the one in use, or the reason why it does not. `isUnread`: the file could not be read. */
type NextTable = (PreparedTable & { changes: TableChanges }) | { reason: string; isUnread: boolean };

export function start(host: Host, settings: MovedConfig): Started {
  const { file = '', everyMs } = settings.moved;
  const table = createUsedTable(host, settings);
  /** The last version that was read; undefined if that failed, so that the next check reads it again. */
  let version: string | undefined;
  const use = (next: NextTable, found: Stats | undefined): void => {
    version = 'reason' in next && next.isUnread ? undefined : versionOf(found);
    void table.use(next);
  };
  // The file is read once at a time, so that the last one counts; purges may wait for Redis.
  let reading = Promise.resolve();
  const reload = (): Promise<void> => (reading = reading.then(readAgain));

  async function readAgain(): Promise<void> {
    // Before the file is read: a change while it is read is noticed later. `watchFile` would miss a change before its first check.
    const found = await stat(file).catch(() => undefined);
    use(await table.readInSlices(found), found);
  }

  const present = statSync(file, { throwIfNoEntry: false });
  use(table.readNow(), present);
  host.settings.onReload(() => void reload());
  let before: string | undefined;
  // One check at a time, because a network drive may not respond.
  const check = oneAtATime(async () => {
    const found = await stat(file).then(versionOf, () => undefined);
    const isWritten = found === before;
    before = found;
    await reading;
    // Otherwise another program may be writing to the file.
    if (isWritten && found !== version) await reload();
  });
  return {
    read(read, next): Promise<Outcome> {
      const url = table.movedTo(read.handle);
      return url === undefined ? next() : Promise.resolve(urlRecord(url, VALUE));
    },
    close: repeat(host.clock, everyMs, check),
  };
}

function createUsedTable({ log, clock, operations, refOf, slicer }: Host, settings: MovedConfig) {
  const { file = '' } = settings.moved;
  const logRejected = ({ reason }: { reason: string }): void =>
    log.warn({ file, reason }, 'moved handles rejected, keeping the current table');
  const logUnread = onceAMinute(clock, (_count, next: { reason: string }) => logRejected(next));
  const readText = createTableReader(settings);
  let current = NO_TABLE;

  function* prepare(text: string): Steps<NextTable> {
    const table = yield* readText(text);
    if (typeof table === 'string') return { reason: table, isUnread: false };
    const urlOf = new Map<string, string>();
    for (const [name, url] of table.handles) {
      urlOf.set(refOf(name).key, url);
      yield;
    }
    return { table, urlOf, changes: yield* changesBetween(current.table, table) };
  }

  return {
    /** Reads the file at the start, when no requests wait. */
    readNow(): NextTable {
      try {
        return runToEnd(prepare(readFileSync(file, 'utf8')));
      } catch (error) {
        return { reason: errorText(error), isUnread: true };
      }
    },
    async readInSlices(found: Stats | undefined): Promise<NextTable> {
      // Reading a named pipe would wait for ever.
      if (found?.isFile() === false) return { reason: 'it is not a regular file', isUnread: false };
      const reason = sizeProblem(found?.size ?? 0);
      if (reason !== undefined) return { reason, isUnread: false };
      try {
        return await slicer.run(prepare(await readFile(file, 'utf8')), { client: 'background' });
      } catch (error) {
        return { reason: errorText(error), isUnread: true };
      }
    },
    /** Replaces the table, and then purges what was cached before; at the start, all that other instances left in Redis. */
    async use(next: NextTable): Promise<void> {
      if ('reason' in next) {
        if (next.isUnread) logUnread(next);
        else logRejected(next);
        return;
      }
      current = next;
      const { handles, prefixes } = next.table;
      const [unconfirmed] = await purgeChanges(next.changes, operations);
      if (unconfirmed === undefined) {
        log.info({ file, handles: handles.size, prefixes: prefixes.size }, 'moved handles loaded');
        return;
      }
      const reason = errorText(unconfirmed);
      const remedy = 'purge the prefixes of the file, or wait until the cached records expire';
      log.error({ file, reason, remedy }, 'moved handles loaded, but the cache may have older records');
    },
    movedTo({ text, key, prefix }: HandleRef): string | undefined {
      const template = current.table.prefixes.get(prefix);
      return current.urlOf.get(key) ?? (template === undefined ? undefined : fillAddress(template, text));
    },
  };
}

async function purgeChanges(
  { handles, prefixes }: TableChanges,
  operations: Host['operations'],
): Promise<unknown[]> {
  const unconfirmed: unknown[] = [];
  const purge = (request: PurgeRequest): Promise<unknown> =>
    operations.purge(request).catch((reason: unknown) => unconfirmed.push(reason));
  for (const prefix of prefixes) await purge({ prefix: `${prefix}/`, isSoft: false });
  for (const some of groupsOf(handles, PURGED)) await purge({ handles: some, isSoft: false });
  return unconfirmed;
}

/** Returns the properties that identify a version of a file; undefined without a file. */
const versionOf = (file: Stats | undefined): string | undefined =>
  file && `${file.ino} ${file.mtimeMs} ${file.size}`;
