// Answers for moved handles before their repository, and reads the table again when its file has changed.
import { readFileSync, statSync, type Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorText } from '../../errors.js';
import type { Outcome } from '../../handle/outcome.js';
import type { HandleRef } from '../../handle/handle.js';
import type { Host } from '../../host.js';
import type { Started } from '../../plugin.js';
import { fillAddress, urlRecord } from '../../upstream/url-record.js';
import { type MovedConfig, createTableReader } from './plugin.js';
import { type MovedTable, changesBetween } from './table.js';

/** The usual index of a URL value. The TTL bounds how long a line counts that was removed while no instance ran. */
const VALUE = { index: 1, ttl: 3600 };

/** Handles of one purge, which is one step of the change feed. */
const PURGED = 1000;

const EMPTY: MovedTable = { handles: new Map(), prefixes: new Map() };

export function start(host: Host, settings: MovedConfig): Started {
  const { log, operations, refOf } = host;
  const { file = '', everyMs } = settings.moved;
  const readText = createTableReader(settings);
  let table = EMPTY;
  let urlOf = new Map<string, string>();
  let version: string | undefined;

  /** Replaces the table, and then purges what was cached before; at the start, all that other instances left in Redis. */
  async function use(next: MovedTable): Promise<void> {
    const { handles, prefixes } = changesBetween(table, next);
    table = next;
    urlOf = new Map([...next.handles].map(([name, url]) => [refOf(name).key, url]));
    for (const prefix of prefixes) await operations.purge({ prefix: `${prefix}/`, isSoft: false });
    for (let at = 0; at < handles.length; at += PURGED)
      await operations.purge({ handles: handles.slice(at, at + PURGED), isSoft: false });
  }

  function load(): void {
    // Before the file is read: a change while it is read is noticed later. `watchFile` would miss a change before its first check.
    version = versionOf(statSync(file, { throwIfNoEntry: false }));
    const next = tableIn(file, readText);
    if (typeof next === 'string') {
      log.warn({ file, reason: next }, 'moved handles rejected, keeping the current table');
      return;
    }
    const { handles, prefixes } = next;
    use(next).then(
      () => {
        log.info({ file, handles: handles.size, prefixes: prefixes.size }, 'moved handles loaded');
      },
      (error: unknown) => {
        const reason = errorText(error);
        const remedy = 'purge the prefixes of the file, or wait until the cached records expire';
        log.error({ file, reason, remedy }, 'moved handles loaded, but the cache may have older records');
      },
    );
  }

  function movedTo({ text, key, prefix }: HandleRef): string | undefined {
    const template = table.prefixes.get(prefix);
    return urlOf.get(key) ?? (template === undefined ? undefined : fillAddress(template, text));
  }

  load();
  host.settings.onReload(load);
  const closed = new AbortController();
  void pollFile(file, { everyMs, signal: closed.signal }, (found) => {
    if (found !== version) load();
  });
  return {
    read(read, next): Promise<Outcome> {
      const url = movedTo(read.handle);
      return url === undefined ? next() : Promise.resolve(urlRecord(url, VALUE));
    },
    close: () => {
      closed.abort();
    },
  };
}

/** Checks the file periodically, one check at a time, because a network drive may not respond. */
async function pollFile(
  file: string,
  { everyMs, signal }: { everyMs: number; signal: AbortSignal },
  onLook: (version: string | undefined) => void,
): Promise<void> {
  for (;;) {
    await sleep(everyMs, undefined, { ref: false });
    const version = await stat(file).then(versionOf, () => undefined);
    if (signal.aborted) return;
    onLook(version);
  }
}

/** Returns the properties that identify a version of a file; undefined without a file. */
const versionOf = (file: Stats | undefined): string | undefined =>
  file && `${file.ino} ${file.mtimeMs} ${file.size}`;

function tableIn(file: string, readText: (text: string) => MovedTable | string): MovedTable | string {
  try {
    return readText(readFileSync(file, 'utf8'));
  } catch (error) {
    return errorText(error);
  }
}
