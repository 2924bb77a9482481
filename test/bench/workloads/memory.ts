// memory: RSS per record, compliance with the configured bound, and the speed of hits with many records.
import { setTimeout as sleep } from 'node:timers/promises';
import { driveOnce, writeTargets } from '../drive/drive.js';
import { OURS } from '../peers/peer.js';
import { type Proxy, startProxy } from '../peers/proxy.js';
import { startUpstream } from '../peers/upstream.js';
import { rssBytes } from '../proc.js';
import { answerOf, exportedRecord, nameOf, targetOf } from '../records.js';
import type { Figures, Row } from '../results.js';
import { everyHandle } from '../targets.js';
import { takeTurns } from './rounds.js';
import type { Bench, Workload } from './workload.js';

export const EMPTY = `${OURS}, empty`;
export const FULL = `${OURS}, full`;
export const OVERFLOWING = `${OURS}, overflowing`;

const MIB = 1024 ** 2;
const MOST_SECONDS = 60;
const SETTLE_MS = 2000;
/** Number of warm-up requests, enough for a process to use as much memory as when busy. */
const WORK = 20_000;

export const memory: Workload = async (bench) => {
  const { plan, crew } = bench;
  const upstream = await crew.start(startUpstream('bare'));
  // `roomMiB` suffices for all records; `overflowing` gets an eighth of it, and must evict.
  const roomMiB = Math.max(16, Math.ceil((plan.records * 1500) / MIB));
  const open = (name: string, maxMiB: number): Promise<Proxy> => {
    const env = { CACHE_MAX_BYTES: `${maxMiB}MiB`, CACHE_FOUND_MAX_ENTRIES: String(plan.records) };
    return crew.start(startProxy({ upstreamUrl: upstream.url, name, env }));
  };
  const empty = await open(EMPTY, roomMiB);
  const full = await open(FULL, roomMiB);
  const overflowing = await open(OVERFLOWING, Math.max(4, Math.ceil(roomMiB / 8)));
  // Warms all proxies up, because a busy process uses more memory than a new process, regardless of its
  // cache.
  const work = writeTargets(manyOf(nameOf(1), Math.min(WORK, plan.records)));
  for (const { url } of [empty, full, overflowing]) {
    await driveOnce({ url, targets: work, mostSeconds: MOST_SECONDS });
  }
  const emptyBytes = rssBytes(empty.pid);
  const filled = await fill(bench, full, { count: plan.records, more: 0, emptyBytes, boundMiB: roomMiB });
  const spilled = await fill(bench, overflowing, {
    count: Math.ceil(plan.records / 2),
    more: Math.ceil(plan.records / 10),
    emptyBytes,
    boundMiB: Math.max(4, Math.ceil(roomMiB / 8)),
  });
  const hot = writeTargets([targetOf(nameOf(plan.records))]);
  const rows = await takeTurns(bench, { peers: [empty, full], targetsOf: () => hot });
  return {
    about: `${plan.records} records of ${answerOf(nameOf(1)).length} bytes of JSON, and the hot load with and without them`,
    rows: [
      ...rows.map((row) => withFigures(row, row.peer === FULL ? filled : {})),
      rowOf(OVERFLOWING, spilled),
    ],
  };
};

const manyOf = (name: string, length: number): string[] =>
  Array.from({ length }, () => `${targetOf(name)}?auth=true`);

const rowOf = (peer: string, figures: Figures): Row => ({ peer, median: figures, rounds: [figures] });

const withFigures = (row: Row, figures: Figures): Row => ({ ...row, median: { ...row.median, ...figures } });

interface Filling {
  /** Number of records to import, of which those beyond the memory bound are skipped. */
  count: number;
  /** Number of records to request afterwards, each of which evicts others. */
  more: number;
  emptyBytes: number;
  boundMiB: number;
}

async function fill(
  { say }: Bench,
  proxy: Proxy,
  { count, more, emptyBytes, boundMiB }: Filling,
): Promise<Figures> {
  const restored = await importRecords(proxy, count);
  const { badStatus, broken } =
    more === 0
      ? { badStatus: count - restored, broken: 0 }
      : await driveOnce({
          url: proxy.url,
          targets: writeTargets(everyHandle(more, count + 1)),
          mostSeconds: MOST_SECONDS,
        });
  await sleep(SETTLE_MS);
  const { entries, bytes } = await foundIn(proxy);
  const rss = rssBytes(proxy.pid);
  say(`  ${proxy.name}: ${entries} records in ${Math.round(rss / MIB)} MiB`);
  return {
    rssMiB: rss / MIB,
    boundMiB,
    entries,
    bytesPerRecord: (rss - emptyBytes) / entries,
    countedPerRecord: bytes / entries,
    wrong: badStatus + broken,
  };
}

const BATCH = 1000;

/** Imports the records, because requesting a million would take four minutes. */
async function importRecords({ adminUrl }: Proxy, count: number): Promise<number> {
  let restored = 0;
  for (let from = 1; from <= count; from += BATCH) {
    const lines = Array.from({ length: Math.min(BATCH, count - from + 1) }, (_, at) =>
      exportedRecord(from + at),
    );
    const response = await fetch(`${adminUrl}/import`, { method: 'POST', body: lines.join('\n') });
    // The handle of the warm-up is already in memory, and is kept.
    const counts = (await response.json()) as { restored: number; kept: number };
    restored += counts.restored + counts.kept;
  }
  return restored;
}

interface Usage {
  store: string;
  entries: number;
  bytes: number;
}

async function foundIn({ adminUrl }: Proxy): Promise<Usage> {
  const { memory: stores } = (await (await fetch(`${adminUrl}/stats`)).json()) as { memory: Usage[] };
  const found = stores.find(({ store }) => store === 'found');
  if (found === undefined) throw new Error('the proxy does not say how many records it keeps');
  return found;
}
