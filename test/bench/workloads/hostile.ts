// hostile: hits during each of the most expensive known requests.
import { adminValue } from '../../../src/dev-server/seed.js';
import { EXPENSIVE_REQUESTS, NAME, sizesOf } from '../../support/expensive-requests.js';
import { put } from '../drive/callers.js';
import { askOnce } from '../drive/callers-by-socket.js';
import { type HostileFigures, type Scheduled, besideHostile, driveScheduled } from '../drive/drive.js';
import { startProxy } from '../peers/proxy.js';
import { startUpstream } from '../peers/upstream.js';
import { PREFIX, nameOf, targetOf, targetPath } from '../records.js';
import { type Figures, Ledger } from '../results.js';
import { assertRightAnswers } from './check.js';
import type { Workload } from './workload.js';

/** Index above those of all record values. */
const ADMIN_INDEX = 9_999_999;
const CONNECTIONS = 8;
const HITS_PER_SECOND = 300;
/** The row that times hits on new connections during the sliced requests with the most slices a second. */
const NEW_CONNECTIONS = { name: 'hits on new connections', beside: 'selection by index' };

export const hostile: Workload = async ({ plan: { seconds, rounds }, crew, say }) => {
  const upstream = await crew.start(startUpstream('demo', 1));
  // The upstream, which serialises records of 1 MiB, must yield to the program that times hits on the same
  // core.
  await upstream.tell('yield');
  const proxy = await crew.start(startProxy({ upstreamUrl: upstream.url }));
  const asked = { port: Number(new URL(proxy.url).port), handle: `${PREFIX}/${nameOf(1)}` };
  await assertRightAnswers(proxy, [targetOf(nameOf(1))], upstream.url);
  const expected = await askOnce({ ...asked, wire: 'http' });
  const hits = { ...asked, expected, perSecond: HITS_PER_SECOND, seconds, wire: 'http' as const };
  await driveScheduled(hits);
  const ledger = new Ledger();
  for (const [row, expensive] of Object.entries(EXPENSIVE_REQUESTS)) {
    say(`  ${row}`);
    // The HS_ADMIN value allows the next record to replace this record.
    const admin = { ...adminValue(), index: ADMIN_INDEX };
    const record = [...expensive.record(sizesOf(expensive).largest), admin];
    const { status, text } = await put(`${upstream.url}${targetPath(NAME)}?overwrite=true`, record);
    if (status >= 300) throw new Error(`the Handle server does not take the record of ${row}: ${text}`);
    // Replaces the old record in the cache, because the read is authoritative.
    await fetch(`${proxy.url}${targetPath(NAME)}?auth=true`);
    for (let round = 0; round < rounds; round++) {
      const driven = await besideHostile({ url: proxy.url, row, connections: CONNECTIONS }, () =>
        driveScheduled(hits),
      );
      ledger.add(row, figuresOf(driven.done, driven.hostile));
      if (row !== NEW_CONNECTIONS.beside) continue;
      const fresh = await besideHostile({ url: proxy.url, row, connections: CONNECTIONS }, () =>
        driveScheduled({ ...hits, wire: 'http-close' }),
      );
      ledger.add(NEW_CONNECTIONS.name, figuresOf(fresh.done, fresh.hostile));
    }
  }
  const about =
    `${HITS_PER_SECOND} hits a second by the clock, whose times these are, ` +
    `beside an expensive request over ${CONNECTIONS} connections`;
  return { about, rows: ledger.rows() };
};

const figuresOf = (
  { p50Ms, p99Ms, inTimePercent, unanswered, badStatus, broken }: Scheduled,
  { done, refused, busy, wrong }: HostileFigures,
): Figures => ({
  ...{ p50Ms, p99Ms, inTimePercent, unanswered },
  ...{ hostileDone: done, hostileRefused: refused, hostileBusy: busy, wrong: wrong + badStatus + broken },
});
