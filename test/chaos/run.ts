// Runs the chaos test: generates load, injects faults from a seeded plan, checks every response and prints
// a summary.
import { ask } from '../support/ask.js';
import { WRITE_HEADERS, numberedBody } from '../support/demo-writes.js';
import { type Figures, Judge } from './judge.js';
import { Ledger } from './ledger.js';
import { startLoad } from './load.js';
import { type Event, makePlan } from './plan.js';
import {
  type Line,
  type Missing,
  type Published,
  type Subscriber,
  createPublished,
  gapsIn,
  subscribe,
} from './published.js';
import { type Random, createRandom } from './random.js';
import { CALM, UNKNOWN, WRITTEN, seedRecords, ttlMsOf } from './records.js';
import { DETECTION_MS, FENCE_MS, DISCONNECTED_MAX_AGE_MS, type World, startWorld } from './world.js';

export interface ChaosOptions {
  seconds: number;
  seed: number;
  instances: number;
  isStrict: boolean;
}

/** Allowance for delays on a busy machine. */
const SLACK_MS = 1000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function runChaos(options: ChaosOptions): Promise<Figures> {
  const { seconds, seed, instances, isStrict } = options;
  const killed = new Map<string, number>();
  const world = await startWorld({
    instances,
    isStrict,
    seed: seedRecords,
    onKilled(life, killedAt) {
      killed.set(life, killedAt);
      ledger.killed(life, killedAt);
    },
  });
  const ledger: Ledger = new Ledger({
    isStrict,
    disconnectedMaxAgeMs: DISCONNECTED_MAX_AGE_MS,
    ttlMsOf,
    reloadedAfterMs: DISCONNECTED_MAX_AGE_MS + DETECTION_MS + SLACK_MS,
    fenceMs: FENCE_MS,
    wasRedisTroubled: world.wasRedisTroubled,
    wasRedisTroubledThroughout: world.wasRedisTroubledThroughout,
    frozenUntil: world.frozenUntil,
  });
  for (const handle of [...CALM, ...WRITTEN]) ledger.stands(handle, { isGone: false });
  for (const handle of UNKNOWN) ledger.stands(handle, { isGone: true });
  const judge = new Judge(ledger);
  const plan = makePlan(createRandom(seed), seconds * 1000, instances);
  const startedAt = Date.now();
  const endsAt = startedAt + seconds * 1000;
  const published = createPublished();
  const stop = startLoad({ world, ledger, judge, random: createRandom(seed + 1), published });
  const subscriber = subscribeTo(world, createRandom(seed + 2));
  try {
    await Promise.all(TRACKS.map((track) => strikeAll(world, track(plan), { startedAt, endsAt })));
    await pause(endsAt - Date.now());
    judge.figures.equalAudits = await world.equalAudits();
    await stop();
    await writeLast(world, published, subscriber);
    comparePublished({ world, published, subscriber, killed }, judge.figures);
  } finally {
    await stop();
    await subscriber.stop();
    judge.figures.wrong.push(...world.violations());
    await world.close();
  }
  report(options, judge.figures, plan.length);
  return judge.figures;
}

function subscribeTo(world: World, random: Random): Subscriber {
  return subscribe({
    nextUrl() {
      const lives = world.lives();
      return lives.length === 0 ? undefined : random.pick(lives).adminUrl;
    },
    nextMs: () => random.between(0, 4000),
  });
}

/** Writes through each proxy, and waits until the feed and the webhook, which keep an order, have these writes. */
async function writeLast(world: World, published: Published, subscriber: Subscriber): Promise<void> {
  const body = numberedBody(1);
  const last = await Promise.all(
    world.lives().map(async ({ name, url }) => {
      const requestId = `21.T11998/last-${name}`;
      for (;;) {
        const startedAt = Date.now();
        const headers = { ...WRITE_HEADERS, 'X-Request-Id': requestId };
        const { status } = await ask(url, `/api/handles/${requestId}`, { method: 'PUT', headers, body });
        if (status >= 300) continue;
        published.acknowledged({ requestId, by: name, startedAt, acknowledgedAt: Date.now() });
        return requestId;
      }
    }),
  );
  subscriber.stay();
  const isIn = (lines: Line[]): boolean =>
    last.every((wanted) => lines.some(({ requestId }) => requestId === wanted));
  while (!isIn(subscriber.lines()) || !isIn(world.posted())) await pause(100);
}

interface Compared {
  world: World;
  published: Published;
  subscriber: Subscriber;
  /** End of each proxy life that was killed. */
  killed: Map<string, number>;
}

function comparePublished({ world, published, subscriber, killed }: Compared, figures: Figures): void {
  /** Changes wait in memory while Redis is unavailable, and are lost with their process. */
  const isLost = ({ by, acknowledgedAt, isLast }: Missing): boolean => {
    const killedAt = killed.get(by);
    return isLast && killedAt !== undefined && world.wasRedisTroubled(acknowledgedAt, killedAt);
  };
  const readers = { 'change file': world.changed(), feed: subscriber.lines(), webhook: world.posted() };
  for (const [name, lines] of Object.entries(readers)) {
    figures.gaps += gapsIn(lines).length;
    for (const write of published.missing(lines)) {
      if (name !== 'change file' && isLost(write)) figures.lostWithProxy++;
      else figures.wrong.push(`${name}: lacks a write without a gap: ${JSON.stringify(write)}`);
    }
  }
}

const TRACKS = (['upstream', 'redis', 'proxy', 'webhook'] as const).map(
  (what) =>
    (plan: Event[]): Event[] =>
      plan.filter((event) => event.what === what),
);

interface Period {
  startedAt: number;
  endsAt: number;
}

/** Runs the events in sequence, because a proxy may take long to start on a busy machine; drops those left at the end. */
async function strikeAll(world: World, events: Event[], { startedAt, endsAt }: Period): Promise<void> {
  for (const event of events) {
    await pause(startedAt + event.atMs - Date.now());
    if (Date.now() > endsAt) return;
    const { atMs, forMs, ...what } = event;
    say(`${(atMs / 1000).toFixed(1)} s, for ${(forMs / 1000).toFixed(1)} s: ${JSON.stringify(what)}`);
    await world.strike(event);
  }
}

const say = (line: string): void => {
  if (process.env['CHAOS_VERBOSE'] !== undefined) process.stdout.write(`${line}\n`);
};

function report(options: ChaosOptions, figures: Figures, faults: number): void {
  const { seconds, seed, instances, isStrict } = options;
  const { ofKept, failedOfKept, wrong } = figures;
  const availability = ofKept === 0 ? 100 : (100 * (ofKept - failedOfKept)) / ofKept;
  const lines = [
    `chaos: ${seconds} s, ${faults} faults, seed ${seed}, ${instances} instances${isStrict ? ', strict' : ''}`,
    `  answers ${figures.answers}: fresh ${figures.fresh}, stale ${figures.stale}, failures where nothing was kept ${figures.failures - failedOfKept}`,
    `  connections broken with their proxy ${figures.broken}`,
    `  writes ${figures.writes}, of unknown end ${figures.writesOfUnknownEnd}`,
    `  gaps of the feed and the webhook ${figures.gaps}, changes lost with a killed proxy ${figures.lostWithProxy}`,
    `  audits without a difference, of the proxies that ran at the end ${figures.equalAudits}`,
    `  availability of what was kept ${availability.toFixed(3)} % (${ofKept} answers)`,
    `  of these, answers of records that a snapshot has restored ${figures.ofRestored}`,
    `  wrong answers ${wrong.length}`,
    ...wrong.slice(0, 20).map((text) => `    ${text}`),
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
