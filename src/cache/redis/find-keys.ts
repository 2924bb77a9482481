// Finds entries in Redis without blocking it.
import type { RedisCommands } from './commands.js';
import { entryPattern, keyOfEntry } from './namespace.js';

/** Names that Redis looks at for one command. */
const SCAN_COUNT = 1000;
/** A database with many keys of others is searched no further. */
const MAX_SCANS = 100;
const SCAN_TIMEOUT_MS = 2000;

/** Keys of entries, which may be unusable, such as those of an earlier run of the server. @throws Error */
export async function* findKeys(
  commands: Pick<RedisCommands, 'keyPrefix' | 'masters' | 'attempt'>,
): AsyncGenerator<string> {
  const { keyPrefix } = commands;
  const pattern = entryPattern(keyPrefix);
  for (const { client } of commands.masters()) {
    let cursor = '0';
    for (let scans = 0; scans < MAX_SCANS; scans++) {
      const scan = client.scan(cursor, 'MATCH', pattern, 'COUNT', SCAN_COUNT);
      const [next, names] = await commands.attempt(scan, SCAN_TIMEOUT_MS);
      for (const name of names) yield keyOfEntry(keyPrefix, name);
      if (next === '0') break;
      cursor = next;
    }
  }
}
