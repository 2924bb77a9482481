// The decision table of a server's health: whether a read is sent in each state, and the state after it.
import nock from 'nock';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { handleRef } from '../../src/handle/handle.js';
import { testContext } from '../support/context.js';
import { useNock } from '../support/nock.js';
import { createClient, UPSTREAM } from './ask.js';

const SECONDARY = 'http://secondary.test:8000';
const OPEN_FOR_MS = 5000;
const AVOIDED_MS = 5000;
const BUSY_FOR_MS = 10_000;
/** The longest pause that is granted. */
const MAX_PAUSE_MS = 60_000;

useNock();
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const REPLIES = {
  good: (get) => get.reply(404, { responseCode: 100 }),
  refused: (get) => get.replyWithError(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })),
  gateway: (get) => get.reply(502, { responseCode: 2 }),
  record: (get) => get.reply(500, { responseCode: 2 }),
  busy: (get) => get.reply(503, { responseCode: 2 }, { 'Retry-After': `${BUSY_FOR_MS / 1000}` }),
  dated: (get) =>
    get.reply(
      503,
      { responseCode: 2 },
      { 'Retry-After': new Date(systemClock.wall() + BUSY_FOR_MS).toUTCString() },
    ),
  vague: (get) => get.reply(503, { responseCode: 2 }, { 'Retry-After': '10 min' }),
  idle: (get) => get.reply(404, { responseCode: 100 }, { 'Retry-After': '10' }),
  away: (get) => get.reply(503, { responseCode: 2 }, { 'Retry-After': '31536000000' }),
} satisfies Record<string, (get: nock.Interceptor) => nock.Scope>;

type Reply = keyof typeof REPLIES;

/** Creates a client whose servers reply as told; each read is for a handle that no read has named before. */
function createServers({ secondaries = [] as string[] } = {}) {
  const context = testContext();
  const breaker = { failures: 3, openForMs: OPEN_FOR_MS };
  const client = createClient({ breaker, retryAfterMs: AVOIDED_MS, secondaries }, context);
  let reads = 0;

  /** Reads while the servers reply as given. Returns the servers that got a request. */
  async function read(primary: Reply, secondary: Reply = 'good', authoritative = false): Promise<string> {
    const asked = new Set<string>();
    for (const [name, url, reply] of [
      ['primary', UPSTREAM, primary],
      ['secondary', SECONDARY, secondary],
    ] as const) {
      const scope = nock(url).persist();
      scope.on('request', () => asked.add(name));
      REPLIES[reply](scope.get(/.*/));
    }
    const handle = handleRef(`21.T1/${++reads}`, false);
    await client.resolve({ handle, authoritative }).catch(() => undefined);
    nock.cleanAll();
    return [...asked].join(' ');
  }

  const breakerState = (): unknown =>
    context.lines.findLast(({ msg }) => msg === 'circuit breaker state changed')?.['breaker'] ?? 'closed';
  const breakerLines = (level: string): unknown[] =>
    context.lines
      .filter((line) => line['msg'] === 'circuit breaker state changed' && line['level'] === level)
      .map(({ breaker: state }) => state);
  return { read, breakerState, breakerLines };
}

type Servers = ReturnType<typeof createServers>;

/** Reads in turn, or lets time pass. */
async function reach({ read }: Servers, steps: readonly (Reply | number)[]): Promise<void> {
  for (const step of steps) {
    if (typeof step === 'number') vi.advanceTimersByTime(step);
    else await read(step);
  }
}

const times = (count: number, reply: Reply): Reply[] => Array<Reply>(count).fill(reply);

const STATES: Record<string, readonly (Reply | number)[]> = {
  closed: [],
  'closed, just answered': ['good'],
  'closed, two failures': times(2, 'gateway'),
  'open, refused': times(3, 'refused'),
  'open, refused, time over': [...times(3, 'refused'), OPEN_FOR_MS],
  'open, gateway': times(3, 'gateway'),
  'open, gateway, trials used': times(6, 'gateway'),
  'open, records': times(30, 'record'),
  paused: ['busy'],
  'paused, time over': ['busy', BUSY_FOR_MS],
  'paused to a date': ['dated'],
  'paused to a date, past it': ['dated', BUSY_FOR_MS],
  'paused for no valid time': ['vague'],
  'told a time by an answer': ['idle'],
  'paused for ages': ['away'],
  'paused for ages, a minute': ['away', MAX_PAUSE_MS],
  'paused, open': [...times(2, 'gateway'), 'busy'],
  'paused, open, time over': [...times(2, 'gateway'), 'busy', BUSY_FOR_MS],
};

/** A cell: whether the read is sent, the state of the breaker after it, and whether the next read is sent. */
const TABLE = `
state                      | good              | refused           | gateway           | record            | busy
closed                     | sent closed sent  | sent closed sent  | sent closed sent  | sent closed sent  | sent closed held
closed, just answered      | sent closed sent  | sent closed sent  | sent closed sent  | sent closed sent  | sent closed held
closed, two failures       | sent closed sent  | sent open sent    | sent open sent    | sent closed sent  | sent open held
open, refused              | held open held    | held open held    | held open held    | held open held    | held open held
open, refused, time over   | sent closed sent  | sent open held    | sent open sent    | sent closed sent  | sent open held
open, gateway              | sent closed sent  | sent open held    | sent open sent    | sent closed sent  | sent open held
open, gateway, trials used | held open held    | held open held    | held open held    | held open held    | held open held
open, records              | sent closed sent  | sent open held    | sent open sent    | sent open sent    | sent open held
paused                     | held closed held  | held closed held  | held closed held  | held closed held  | held closed held
paused, time over          | sent closed sent  | sent closed sent  | sent closed sent  | sent closed sent  | sent closed held
paused to a date           | held closed held  | held closed held  | held closed held  | held closed held  | held closed held
paused to a date, past it  | sent closed sent  | sent closed sent  | sent closed sent  | sent closed sent  | sent closed held
paused for no valid time   | sent closed sent  | sent closed sent  | sent closed sent  | sent closed sent  | sent closed held
told a time by an answer   | sent closed sent  | sent closed sent  | sent closed sent  | sent closed sent  | sent closed held
paused for ages            | held closed held  | held closed held  | held closed held  | held closed held  | held closed held
paused for ages, a minute  | sent closed sent  | sent closed sent  | sent closed sent  | sent closed sent  | sent closed held
paused, open               | held open held    | held open held    | held open held    | held open held    | held open held
paused, open, time over    | sent closed sent  | sent open held    | sent open sent    | sent closed sent  | sent open held
`;

const [[, ...replies] = [], ...rows] = TABLE.trim()
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()));

describe('one server', () => {
  test.each(rows.map(([state = '', ...cells]) => [state, cells] as const))('%s', async (state, cells) => {
    const found: string[] = [];
    for (const reply of replies) {
      const servers = createServers();
      await reach(servers, STATES[state]!);
      const send = async (next: Reply): Promise<string> =>
        (await servers.read(next)) !== '' ? 'sent' : 'held';
      const first = await send(reply as Reply);
      const breaker = servers.breakerState();
      found.push(`${first} ${String(breaker)} ${await send('good')}`);
    }
    expect(found).toEqual(cells);
  });
});

test('a server that stays down costs one line of the breaker, and one when it is back', async () => {
  const servers = createServers();
  await reach(servers, [
    ...times(3, 'refused'),
    OPEN_FOR_MS,
    'refused',
    OPEN_FOR_MS,
    'refused',
    OPEN_FOR_MS,
    'good',
  ]);
  expect(servers.breakerLines('warn')).toEqual(['open', 'closed']);
  expect(servers.breakerLines('debug')).toEqual(['half-open', 'open', 'half-open', 'open', 'half-open']);
});

describe('primary with a secondary', () => {
  // The servers that get a read, then those that get the next ones: immediately, and when the time is over.
  test.each<[Reply, Reply, string, string, string]>([
    ['good', 'good', 'primary', 'primary', 'primary'],
    ['refused', 'good', 'primary secondary', 'secondary', 'primary'],
    ['refused', 'refused', 'primary secondary', 'primary', 'primary'],
    ['gateway', 'good', 'primary secondary', 'secondary', 'primary'],
    ['gateway', 'refused', 'primary secondary', 'primary', 'primary'],
    ['record', 'good', 'primary secondary', 'primary', 'primary'],
    ['record', 'refused', 'primary secondary', 'primary', 'primary'],
    ['busy', 'good', 'primary secondary', 'secondary', 'secondary'],
    ['busy', 'refused', 'primary secondary', 'secondary', 'secondary'],
  ])('%s, %s', async (primary, secondary, first, next, later) => {
    const { read } = createServers({ secondaries: [SECONDARY] });
    expect(await read(primary, secondary)).toBe(first);
    expect(await read('good')).toBe(next);
    vi.advanceTimersByTime(AVOIDED_MS);
    expect(await read('good')).toBe(later);
  });

  test('a primary that is avoided gets all reads after an authoritative response', async () => {
    const { read } = createServers({ secondaries: [SECONDARY] });
    await read('gateway');
    expect(await read('good', 'good', true)).toBe('primary');
    expect(await read('good')).toBe('primary');
  });

  test('a server that is avoided is tried by one read a period', async () => {
    const { read } = createServers({ secondaries: [SECONDARY] });
    await read('refused');
    vi.advanceTimersByTime(AVOIDED_MS);
    expect(await read('refused')).toBe('primary secondary');
    expect(await read('refused')).toBe('secondary');
  });
});
