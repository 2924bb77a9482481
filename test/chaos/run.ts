// Runs the chaos test: generates load, injects faults from a seeded plan, checks every response and prints
// a summary.
import { type Figures, Judge } from './judge.js';
import { Ledger } from './ledger.js';
import { startLoad } from './load.js';
import { type Event, makePlan } from './plan.js';
import { createRandom } from './random.js';
import { CALM, UNKNOWN, WRITTEN, seedRecords } from './records.js';
import { DETECTION_MS, FENCE_MS, DISCONNECTED_MAX_AGE_MS, type World, startWorld } from './world.js';

export interface ChaosOptions {
  seconds: number;
  seed: number;
}

/** Allowance for delays on a busy machine. */
const SLACK_MS = 1000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function runChaos({ seconds, seed }: ChaosOptions): Promise<Figures> {
  const world = await startWorld((life) => {
    ledger.killed(life, Date.now());
  }, seedRecords);
  const ledger: Ledger = new Ledger({
    boundMs: DISCONNECTED_MAX_AGE_MS + DETECTION_MS + SLACK_MS,
    fenceMs: FENCE_MS,
    wasRedisTroubled: world.wasRedisTroubled,
    wasFrozen: world.wasFrozen,
  });
  for (const handle of [...CALM, ...WRITTEN]) ledger.stands(handle, { isGone: false });
  for (const handle of UNKNOWN) ledger.stands(handle, { isGone: true });
  const judge = new Judge(ledger);
  const plan = makePlan(createRandom(seed), seconds * 1000, 2);
  const startedAt = Date.now();
  const stop = startLoad({ world, ledger, judge, random: createRandom(seed + 1) });
  try {
    await Promise.all(TRACKS.map((track) => strikeAll(world, track(plan), startedAt)));
    await pause(startedAt + seconds * 1000 - Date.now());
    judge.figures.equalAudits = await world.equalAudits();
  } finally {
    await stop();
    judge.figures.wrong.push(...world.violations());
    await world.close();
  }
  report({ seconds, seed }, judge.figures, plan.length);
  return judge.figures;
}

const TRACKS = (['upstream', 'redis', 'proxy'] as const).map(
  (what) =>
    (plan: Event[]): Event[] =>
      plan.filter((event) => event.what === what),
);

/** Runs the events in sequence, because a proxy may take long to start on a busy machine. */
async function strikeAll(world: World, events: Event[], startedAt: number): Promise<void> {
  for (const event of events) {
    await pause(startedAt + event.atMs - Date.now());
    const { atMs, forMs, ...what } = event;
    say(`${(atMs / 1000).toFixed(1)} s, for ${(forMs / 1000).toFixed(1)} s: ${JSON.stringify(what)}`);
    await world.strike(event);
  }
}

const say = (line: string): void => {
  if (process.env['CHAOS_VERBOSE'] !== undefined) process.stdout.write(`${line}\n`);
};

function report({ seconds, seed }: ChaosOptions, figures: Figures, faults: number): void {
  const { ofKept, failedOfKept, wrong } = figures;
  const availability = ofKept === 0 ? 100 : (100 * (ofKept - failedOfKept)) / ofKept;
  const lines = [
    `chaos: ${seconds} s, ${faults} faults, seed ${seed}`,
    `  answers ${figures.answers}: fresh ${figures.fresh}, stale ${figures.stale}, failures where nothing was kept ${figures.failures - failedOfKept}`,
    `  connections broken with their proxy ${figures.broken}`,
    `  writes ${figures.writes}, of unknown end ${figures.writesOfUnknownEnd}`,
    `  audits without a difference, of the proxies that ran at the end ${figures.equalAudits}`,
    `  availability of what was kept ${availability.toFixed(3)} % (${ofKept} answers)`,
    `  of these, answers of records that a snapshot has restored ${figures.ofRestored}`,
    `  wrong answers ${wrong.length}`,
    ...wrong.slice(0, 20).map((text) => `    ${text}`),
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
