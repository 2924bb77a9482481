// hostile: hits beside each of the most expensive requests that we know.
import { adminValue } from '../../handle-server/seed.js';
import { EXPENSIVE_REQUESTS, NAME, sizesOf } from '../../support/expensive-requests.js';
import { put } from '../drive/callers.js';
import { askOnce } from '../drive/callers-by-socket.js';
import { driveBySockets, driveHostile } from '../drive/drive.js';
import { startProxy } from '../peers/proxy.js';
import { startUpstream } from '../peers/upstream.js';
import { PREFIX, nameOf, targetOf, targetPath } from '../records.js';
import { Ledger } from '../results.js';
import { assertRightAnswers } from './check.js';
import type { Workload } from './workload.js';

/** Behind all values of the records. */
const ADMIN_INDEX = 9_999_999;
const CONNECTIONS = 8;
/** About 300 hits a second. */
const HITTERS = { callers: 20, pauseMs: 66 };

export const hostile: Workload = async ({ plan: { seconds }, crew, say }) => {
  const upstream = await crew.start(startUpstream('demo', 1));
  const proxy = await crew.start(startProxy({ upstreamUrl: upstream.url }));
  const asked = {
    wire: 'http',
    port: Number(new URL(proxy.url).port),
    handle: `${PREFIX}/${nameOf(1)}`,
  } as const;
  await assertRightAnswers(proxy, [targetOf(nameOf(1))], upstream.url);
  const hits = { ...asked, ...HITTERS, expected: await askOnce(asked), seconds };
  await driveBySockets(hits);
  const ledger = new Ledger();
  for (const [row, expensive] of Object.entries(EXPENSIVE_REQUESTS)) {
    say(`  ${row}`);
    // With an administrator, so that the next record can replace it.
    const admin = { ...adminValue(), index: ADMIN_INDEX };
    const record = [...expensive.record(sizesOf(expensive).largest), admin];
    const { status, text } = await put(`${upstream.url}${targetPath(NAME)}?overwrite=true`, record);
    if (status >= 300) throw new Error(`the Handle server does not take the record of ${row}: ${text}`);
    // Read once, so that the old one is not in the cache.
    await fetch(`${proxy.url}${targetPath(NAME)}?auth=true`);
    const expensiveOnes = driveHostile({
      url: proxy.url,
      row,
      seconds: seconds + 1,
      connections: CONNECTIONS,
    });
    const { p50Ms, p99Ms, inTimePercent, badStatus, broken } = await driveBySockets(hits);
    const { answers, wrong } = await expensiveOnes;
    ledger.add(row, {
      ...{ p50Ms, p99Ms, inTimePercent, hostileAnswers: answers },
      wrong: wrong + badStatus + broken,
    });
  }
  const about = `about 300 hits a second, whose times these are, beside an expensive request over ${CONNECTIONS} connections`;
  return { about, rows: ledger.rows() };
};
