// `stats`: the current statistics of a proxy, once or refreshed every second.
import { setTimeout as sleep } from 'node:timers/promises';
import { type AdminOptions, askAdmin } from './client.js';
import { listenForInterrupt } from './paced-requests.js';
import { type StatsReport, statsText } from './stats-text.js';

export interface StatsOptions extends AdminOptions {
  watch?: boolean;
  json?: boolean;
}

const WATCH_MS = 1000;
/** ANSI: clear the screen, move the cursor to the top left. */
const CLEAR = '\u001b[2J\u001b[H';

export async function stats(options: StatsOptions): Promise<void> {
  const { watch = false, json = false } = options;
  let before: { at: number; total: number } | undefined;
  const fetchStats = async (): Promise<string> => {
    const report = (await askAdmin(options, '/stats')) as StatsReport;
    if (json) return JSON.stringify(report);
    const now = { at: performance.now(), total: report.requests.total };
    const perSecond = before && ((now.total - before.total) * 1000) / (now.at - before.at);
    before = now;
    return statsText(report, perSecond);
  };
  if (!watch) {
    process.stdout.write(`${await fetchStats()}\n`);
    return;
  }
  const clear = process.stdout.isTTY && !json ? CLEAR : '';
  const { signal, release } = listenForInterrupt();
  while (!signal.aborted) {
    process.stdout.write(`${clear}${await fetchStats()}\n`);
    await sleep(WATCH_MS, undefined, { signal }).catch(() => undefined);
  }
  release();
}
