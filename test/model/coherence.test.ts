// Checks every state of the cache coherence model with Spin. `npm run test:model` includes the larger models.
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished } from 'vitest';
import { itWithProgram } from '../support/programs.js';

const run = promisify(execFile);
const MODEL = fileURLToPath(new URL('coherence.pml', import.meta.url));
const isLong = process.env['MODEL'] === 'long';

/** Model parameters, explained at the top of coherence.pml. */
type Choice = Record<string, number>;

const NO_LOADS = { LOADS: 0 };

/** The reader stays connected to a former master that hangs, and whose clock is set back before it returns. */
const SET_BACK = { FAILBACK: 1, HANG: 2, SET_BACK: 1, NUMBERS: 4, ...NO_LOADS };

/**
 * The writer has joined a master that hangs, without a lease yet, and the reader starts at its successor. Too large to visit
 * every state: with the rule, no old record is served within the depth.
 */
const JOINED = { FAILBACK: 1, HANG: 1, LATE: 2, NUMBERS: 3, READER_LOADS: 1, DEPTH: 170 };

/** Single faults, and pairs of faults in any order, under which the guarantee holds. */
const HOLDS: [faults: string, choice: Choice][] = [
  ['no fault', {}],
  ['a lost message', { LOSE: 1 }],
  ['two lost messages', { LOSE: 1, FAULTS: 2, ...NO_LOADS }],
  ['an authoritative and an ordinary load', { AUTH: 1 }],
  ['a disconnected instance', { CUT: 1, ...NO_LOADS }],
  ['a disconnected and a starting instance', { CUT: 1, LATE: 1, ...NO_LOADS }],
  ['a killed instance', { KILL: 1 }],
  ['an instance that is frozen or has a slow connection', { DELAY: 1, NUMBERS: 3, ...NO_LOADS }],
  ['a paused virtual machine', { PAUSE: 1, ...NO_LOADS }],
  ['a stopped instance', { STOP: 1, ...NO_LOADS }],
  ['a frozen or unreachable Redis', { FREEZE: 1, ...NO_LOADS }],
  ['a Redis that restarts empty or from an old dump', { RESTART: 1, ...NO_LOADS }],
  ['an eviction', { EVICT: 1, ...NO_LOADS }],
  ['a Redis that refuses to publish', { DENY: 1, ...NO_LOADS }],
];

/** Faults with too many states to verify for three instances. */
const TOO_LARGE = ['DELAY', 'FREEZE', 'RESTART', 'LATE', 'AUTH', 'DENY'];

/** Protocol rules without which Spin must find an old record. */
const BREAKS: [rule: string, choice: Choice][] = [
  ['a writer waits for the other members', { NO_BARRIER: 1 }],
  ['a load from before a write is not stored', { NO_MARK: 1 }],
  ['an authoritative response voids older loads', { AUTH: 1, NO_REPLACED_CHANGE: 1 }],
  ['a member that has missed a message is expelled', { NO_EXPEL: 1, LOSE: 1 }],
  ['two reads of the member list are a lease apart', { NO_WAIT_AFTER_READ: 1, LOSE: 1 }],
  ['no data of a different server run is used', { NO_RUN: 1, RESTART: 1, ...NO_LOADS }],
  ['a new member list may be incomplete', { NO_LIST_AGE: 1, EVICT: 1, ...NO_LOADS }],
  ['numbers are read after a connection loss', { NO_NUMBERS: 1, CUT: 1, ...NO_LOADS }],
  ['a member reports before it renews', { NO_REPORT: 1, FREEZE: 1, ...NO_LOADS }],
  ['a returning member waits for members that may report', { NO_WAIT_FOR_LAPSED: 1, FREEZE: 1, ...NO_LOADS }],
  ['a late renewal is void', { NO_LATENESS: 1, FREEZE: 1, ...NO_LOADS }],
  ['fences of lapsed members make entries stale', { NO_SOFTEN: 1, CUT: 1, ...NO_LOADS }],
  ['an entry under a fence expires soon in Redis', { NO_FENCED_END: 1, CUT: 1, LATE: 1, ...NO_LOADS }],
  ['a fence counts only under a lease', { NO_LEASED_RAISE: 1, DELAY: 1, NUMBERS: 4, ...NO_LOADS }],
  ['a pause is noticed', { STOP: 1, NO_PAUSE: 1, ...NO_LOADS }],
  ['a pause is noticed by the clock, before a timer fires', { STOP: 1, NO_PAUSE_CLOCK: 1, ...NO_LOADS }],
  ['a lease ends when the clocks move apart', { NO_CLOCK_SHIFT: 1, PAUSE: 1, ...NO_LOADS }],
  ['no lease is renewed while Redis refuses to publish', { NO_RIGHT: 1, DENY: 1, ...NO_LOADS }],
];

const LONG_HOLDS: [faults: string, choice: Choice][] = [
  ['a write, an authoritative load and an ordinary load', { AUTH: 1, WRITERS: 2 }],
  ['a lost message and a slow instance', { LOSE: 1, DELAY: 1, FAULTS: 2, NUMBERS: 3, ...NO_LOADS }],
  ['a master that hangs and returns', { FAILBACK: 1, NUMBERS: 4, ...NO_LOADS }],
  ['a master that hangs, and returns with its clock set back', SET_BACK],
  ['a disconnected instance and a load', { CUT: 1 }],
  ['a disconnected instance, a starting instance and a load', { CUT: 1, LATE: 1 }],
  ['a frozen Redis and a load', { FREEZE: 1 }],
  ['a restarting Redis and a load', { RESTART: 1 }],
  ['an eviction and a load', { EVICT: 1 }],
  ['a paused machine and a load', { PAUSE: 1 }],
];

const LONG_BREAKS: [rule: string, choice: Choice][] = [
  ['no entry of a different era is fresh', { NO_ERA: 1, FAILBACK: 1, ...NO_LOADS }],
  ['a member lapses early for a member without a lease', { NO_EARLY_LAPSE: 1, ...SET_BACK }],
  ['a member without a lease starts over when Redis is silent', { NO_SILENCE: 1, ...JOINED }],
  [
    'a write waits when the member list cannot be read',
    { NO_READ: 1, LOSE: 1, DELAY: 1, FAULTS: 2, NUMBERS: 3, ...NO_LOADS },
  ],
  ['memory waits for Redis under a fence', { NO_FENCED_LOAD: 1, CUT: 1, LATE: 1 }],
  ['a load without Redis expires early', { NO_LINKED_KEEP: 1, CUT: 1, LATE: 1 }],
];

interface Found {
  isComplete: boolean;
  states: number;
  errors: number;
}

/** Builds the verifier in a temporary folder, and runs it to completion or to the first old record. */
async function verify(choice: Choice): Promise<Found> {
  const folder = await mkdtemp(join(tmpdir(), 'coherence-model-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const inFolder = { cwd: folder, maxBuffer: 1 << 26 };
  await run(
    'spin',
    ['-a', ...Object.entries(choice).map(([name, value]) => `-D${name}=${value}`), MODEL],
    inFolder,
  );
  const optimization = isLong ? '-O2' : '-O0';
  await run(
    'gcc',
    [
      optimization,
      '-w',
      ...(choice['DEPTH'] ? ['-DREACH'] : []),
      '-DSAFETY',
      '-DNOREDUCE',
      '-DCOLLAPSE',
      '-o',
      'verify',
      'pan.c',
    ],
    inFolder,
  );
  const { stdout } = await run('./verify', [`-m${choice['DEPTH'] ?? 1_000_000}`, '-n', '-E'], inFolder);
  const numberOf = (pattern: RegExp): number => Number(pattern.exec(stdout)?.[1]);
  // A truncated search proves nothing.
  const isComplete = !/max search depth too small|Search not completed|out of memory/.test(stdout);
  return { isComplete, states: numberOf(/(\d+) states, stored/), errors: numberOf(/errors: (\d+)/) };
}

/** Cases by number of instances and faults. */
const CASES: [count: number, faults: string, choice: Choice][] = (
  isLong ? [...HOLDS, ...LONG_HOLDS] : HOLDS
).map(([faults, choice]) => [2, faults, choice]);
if (isLong)
  for (const [faults, choice] of HOLDS)
    if (!TOO_LARGE.some((fault) => fault in choice))
      CASES.push([3, faults, { ...choice, ...NO_LOADS, N: 3 }]);

describe('cache coherence model (Spin)', () => {
  for (const [count, faults, choice] of CASES) {
    const name = `${count} instances and ${faults}`;
    itWithProgram('spin', `serves no old record with ${name}`, async () => {
      const found = await verify(choice);
      process.stdout.write(`${name}: ${found.states.toLocaleString('en')} states\n`);
      expect(found).toMatchObject({ isComplete: true, errors: 0 });
      expect(found.states).toBeGreaterThan(1000);
    });
  }
});

describe('cache coherence model (Spin) with a disabled rule', () => {
  for (const [rule, choice] of isLong ? [...BREAKS, ...LONG_BREAKS] : BREAKS)
    itWithProgram('spin', `serves an old record without the rule that ${rule}`, async () => {
      expect((await verify(choice)).errors).toBe(1);
    });
});
