// `stats`: what happens now, once or again and again.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Admin, callAdmin } from './call.js';
import { untilInterrupted } from './interrupt.js';
import { type ShownStats, statsTable } from './stats-table.js';

export interface StatsOptions extends Admin {
  watch?: boolean;
  json?: boolean;
}

const WATCH_MS = 1000;
/** Clears a terminal and goes to its first place. */
const CLEAR = '\u001b[2J\u001b[H';

export async function stats(options: StatsOptions): Promise<void> {
  const { watch = false, json = false } = options;
  const once = async (): Promise<string> => {
    const seen = await callAdmin(options, '/stats');
    return json ? JSON.stringify(seen) : statsTable(seen as ShownStats);
  };
  if (!watch) {
    process.stdout.write(`${await once()}\n`);
    return;
  }
  const clear = process.stdout.isTTY && !json ? CLEAR : '';
  const { signal, release } = untilInterrupted();
  while (!signal.aborted) {
    process.stdout.write(`${clear}${await once()}\n`);
    await sleep(WATCH_MS, undefined, { signal }).catch(() => undefined);
  }
  release();
}
