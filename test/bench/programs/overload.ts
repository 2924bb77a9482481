// Reads uncached handles: `node overload.js URL CONTROL_URL SECONDS LIMIT…`. For SECONDS under each Handle
// server limit, greedy clients request unknown names without a pause, and polite clients an occasional
// record. Each client has a separate network.
import { setTimeout as pause } from 'node:timers/promises';
import { get } from '../drive/callers.js';
import { nameOf, targetOf } from '../records.js';
import { quantile } from '../statistics.js';
import { yieldToOthers } from './priority.js';

const [url = '', control = '', seconds = '', ...limits] = process.argv.slice(2);

const GREEDY = { clients: 10, connections: 20 };
const POLITE = { clients: 200, pauseMs: 1000 };

/** Figures for a phase. A response counts in the phase in which it arrives. */
interface Phase {
  politeAsked: number;
  politeAnswered: number;
  politeMs: number[];
  greedyAnswered: number;
  /** Responses that are neither correct nor a rejection. */
  wrong: number;
}

const newPhase = (): Phase => ({
  ...{ politeAsked: 0, politeAnswered: 0, politeMs: [], greedyAnswered: 0, wrong: 0 },
});

let phase = newPhase();
let isOver = false;
let [unknown, records] = [0, 0];
const REFUSED = 503;

async function beGreedy(from: string): Promise<void> {
  while (!isOver) {
    const { status } = await get(url + targetOf(`UNKNOWN${unknown++}`), from);
    if (status === 404) phase.greedyAnswered++;
    else if (status !== REFUSED && status !== 429) phase.wrong++;
  }
}

async function bePolite(from: string): Promise<void> {
  await pause(Math.random() * POLITE.pauseMs);
  while (!isOver) {
    const name = nameOf(++records);
    const askedAt = performance.now();
    phase.politeAsked++;
    const { status, text } = await get(url + targetOf(name), from);
    if (status === 200 && text.includes(`objects/${name}`)) {
      phase.politeAnswered++;
      phase.politeMs.push(performance.now() - askedAt);
    } else if (status !== REFUSED && status !== 429) phase.wrong++;
    await pause(POLITE.pauseMs);
  }
}

const tell = async (order: string): Promise<number> => Number(await (await fetch(control + order)).text());

const each = (count: number, run: (at: number) => Promise<void>): Promise<void>[] =>
  Array.from({ length: count }, (_, at) => run(at));

async function measure(limit: string): Promise<Record<string, number>> {
  await tell(`limit=${limit}`);
  phase = newPhase();
  const before = await tell('');
  await pause(Number(seconds) * 1000);
  const { politeMs, ...counts } = phase;
  const possible = Math.min(counts.politeAsked, Number(limit) * Number(seconds));
  return {
    ...counts,
    politeShare: counts.politeAnswered / possible,
    politeP99Ms: quantile(politeMs, 0.99),
    upstreamRequests: (await tell('')) - before,
  };
}

yieldToOthers();
const clients = [
  ...each(GREEDY.clients * GREEDY.connections, (at) => beGreedy(`127.1.${at % GREEDY.clients}.1`)),
  ...each(POLITE.clients, (at) => bePolite(`127.2.${at}.1`)),
];
const figures: Record<string, number>[] = [];
for (const limit of limits) figures.push(await measure(limit));
isOver = true;
await Promise.allSettled(clients);
process.stdout.write(`${JSON.stringify(figures)}\n`, () => process.exit(0));
