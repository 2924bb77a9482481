// Each request parses its handle once, and lookup, load and routing share the result.
import { describe, expect, test, vi } from 'vitest';
import * as parsing from '../../src/handle/handle.js';
import { askNative } from '../support/native-messages.js';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { HANDLE, PATH, mockUpstream, notFound, recordOf } from '../support/upstream.js';

vi.mock('../../src/handle/handle.js', { spy: true });
useNock();

/** Returns the arguments of all calls that parse or fold `HANDLE` or its prefix. */
function foldings(): unknown[] {
  const { foldedRef, exactRef, handleRef, foldHandle, upperAscii } = vi.mocked(parsing);
  return [foldedRef, exactRef, handleRef, foldHandle, upperAscii]
    .flatMap((fold) => fold.mock.calls.map(([text]) => text))
    .filter((text) => text.startsWith('21.T11998'));
}

const batch = `/api/handles?handle=${encodeURIComponent(HANDLE)}`;

describe('handle parsing', () => {
  test.each<[string, (proxy: Proxy) => Promise<unknown>]>([
    ['a record', ({ ask }) => ask(PATH)],
    ['a redirect', ({ ask }) => ask(`/${HANDLE}`)],
    ['redirect JSON', ({ ask }) => ask(`/${HANDLE}?action=api`)],
    ['a batch element', ({ ask }) => ask(batch)],
    ['an ePIC v2 read', ({ ask }) => ask(`/api/v2/handles/${HANDLE}`)],
    ['a native message', ({ app }) => askNative(app.native, HANDLE, { transport: 'udp' })],
  ])('runs once on a cache miss: %s', async (_what, read) => {
    // The other targets are records of the prefix.
    const upstream = mockUpstream((target) => (target === PATH ? recordOf() : notFound('0.NA/0.NA')));
    const proxy = await startProxy({ V2_ANONYMOUS_READ: 'true' });
    vi.clearAllMocks();
    await read(proxy);
    expect(upstream.targets).toContain(PATH);
    expect(foldings()).toEqual([HANDLE]);
  });
});
