// The decision table of the failure cache: what a failed load means for the next read of its handle.
import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { type Answer, HANDLE, PATH, type MockUpstream, mockUpstream, recordOf } from '../support/upstream.js';

useNock();

const REPLIES: Record<string, Answer> = {
  refused: { status: 0, body: '', error: 'ECONNREFUSED' },
  reset: { status: 0, body: '', error: 'ECONNRESET' },
  gateway: { status: 502, body: { responseCode: 2 } },
  record: { status: 500, body: { responseCode: 2 } },
  unavailable: { status: 503, body: { responseCode: 2 } },
  busy: { status: 503, body: 'try later' },
  invalid: { status: 200, body: 'rubbish' },
};

const good = recordOf();

/** What happens between the failure and the next read, while the Handle server works again. */
const EVENTS: Record<string, (proxy: Proxy, upstream: MockUpstream) => unknown> = {
  nothing: () => undefined,
  'the time is over': ({ pass }) => {
    pass(5000);
  },
  'auth=true': ({ ask }) => ask(`${PATH}?auth=true`),
  'auth=true fails': async ({ ask }, upstream) => {
    upstream.answers(REPLIES['gateway']!);
    await ask(`${PATH}?auth=true`);
    upstream.answers(good);
  },
  purge: ({ app }) => app.operations.purge({ handles: [HANDLE], isSoft: false }),
  'soft purge': ({ app }) => app.operations.purge({ handles: [HANDLE], isSoft: true }),
};

/** A cell: the status of the next read, whether its record is stale, and the number of its requests. */
const TABLE = `
failure     | entry | nothing     | the time is over | auth=true | auth=true fails | purge | soft purge
refused     | none  | 200 1       | 200 1            | 200 0     | 502 0           | 200 1 | 200 1
reset       | none  | 502 0       | 200 1            | 200 0     | 502 0           | 200 1 | 200 1
gateway     | none  | 502 0       | 200 1            | 200 0     | 502 0           | 200 1 | 200 1
record      | none  | 500 0       | 200 1            | 200 0     | 502 0           | 200 1 | 200 1
unavailable | none  | 503 0       | 200 1            | 200 0     | 502 0           | 200 1 | 200 1
busy        | none  | 200 1       | 200 1            | 200 0     | 502 0           | 200 1 | 200 1
invalid     | none  | 502 0       | 200 1            | 200 0     | 502 0           | 200 1 | 200 1
refused     | stale | 200 stale 0 | 200 1            | 200 0     | 200 stale 0     | 200 1 | 200 1
reset       | stale | 200 stale 0 | 200 1            | 200 0     | 200 stale 0     | 200 1 | 200 1
gateway     | stale | 200 stale 0 | 200 1            | 200 0     | 200 stale 0     | 200 1 | 200 1
record      | stale | 200 stale 0 | 200 1            | 200 0     | 200 stale 0     | 200 1 | 200 1
unavailable | stale | 200 stale 0 | 200 1            | 200 0     | 200 stale 0     | 200 1 | 200 1
busy        | stale | 200 stale 0 | 200 1            | 200 0     | 200 stale 0     | 200 1 | 200 1
invalid     | stale | 200 stale 0 | 200 1            | 200 0     | 200 stale 0     | 200 1 | 200 1
`;

const [[, , ...events] = [], ...rows] = TABLE.trim()
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()));

async function nextRead(failure: string, entry: string, event: string): Promise<string> {
  const upstream = mockUpstream();
  const proxy = await startProxy({ CACHE_FOUND_MAX_TTL: '1m' });
  if (entry === 'stale') {
    await proxy.ask(PATH);
    proxy.pass(120_000);
  }
  upstream.answers(REPLIES[failure]!);
  await proxy.ask(PATH);
  upstream.answers(good);
  await EVENTS[event]!(proxy, upstream);
  const before = upstream.asked;
  const { status, headers } = await proxy.ask(PATH);
  const isStale = String(headers['cache-status']).includes('detail=');
  return `${status} ${isStale ? 'stale ' : ''}${upstream.asked - before}`;
}

describe('after a failure', () => {
  const cases = rows.flatMap(([failure = '', entry = '', ...cells]) =>
    events.map((event, at) => [failure, entry, event, cells[at]!] as const),
  );
  test.each(cases)('%s, entry: %s, then: %s', async (failure, entry, event, cell) => {
    expect(await nextRead(failure, entry, event)).toBe(cell);
  });
});
