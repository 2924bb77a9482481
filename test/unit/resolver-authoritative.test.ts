// An unstorable response still invalidates remote copies of the record, which may be older.
import { describe, expect, test } from 'vitest';
import type { Change } from '../../src/cache/coherence/message.js';
import { toBytes } from '../../src/handle/bytes.js';
import { handleRef } from '../../src/handle/handle.js';
import { createLoneResolver } from '../support/lone-resolver.js';
import { NOW, entryOf } from '../support/store-contract.js';

const HANDLE = handleRef('21.T1/FENCED', false);
const now = (): number => NOW;

/** Starts a resolver with an empty memory and records published changes. */
function start() {
  const changes: Change[] = [];
  const { resolver, memory } = createLoneResolver({
    now,
    load: () => Promise.resolve({ kind: 'found', values: toBytes('[1]'), ttls: [60] }),
    publish(change) {
      changes.push(change);
      return Promise.resolve();
    },
  });
  return { memory, changes, resolver, key: HANDLE.key };
}

describe('unstorable authoritative response', () => {
  test('invalidates remote copies even when no local entry exists', async () => {
    const { memory, changes, resolver, key } = start();
    memory.applyChange({ kind: 'raise', key, fence: 'elsewhere/1', lifeMs: 1000 });
    await resolver.resolve(HANDLE, { authoritative: true });
    expect(changes).toMatchObject([{ kind: 'forget', key }]);
  });

  test('preserves an identical local entry', async () => {
    const { memory, changes, resolver, key } = start();
    memory.set(key, { ...entryOf('same'), values: toBytes('[1]') }, memory.get(key).ticket);
    memory.applyChange({ kind: 'raise', key, fence: 'elsewhere/1', lifeMs: 1000 });
    await resolver.resolve(HANDLE, { authoritative: true });
    expect(changes).toEqual([]);
  });

  test('invalidates a different local entry', async () => {
    const { memory, changes, resolver, key } = start();
    memory.set(key, entryOf('other'), memory.get(key).ticket);
    memory.applyChange({ kind: 'raise', key, fence: 'elsewhere/1', lifeMs: 1000 });
    await resolver.resolve(HANDLE, { authoritative: true });
    expect(changes).toMatchObject([{ kind: 'forget', key }]);
  });
});
