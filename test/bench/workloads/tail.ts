// tail: a resolver's typical load, rarely repeated handles, with a cache for a fifth of them; crawler: the same next to
// a crawler.
import { driveOnce, writeTargets } from '../drive/drive.js';
import { startHdlProxy } from '../peers/hdlproxy.js';
import { startNginx } from '../peers/nginx.js';
import { startCompared, startProxy } from '../peers/proxy.js';
import { startUpstream } from '../peers/upstream.js';
import { CRAWLED_EVERY, crawledTargets, tailTargets } from '../targets.js';
import type { Figures } from '../results.js';
import { takeTurns } from './rounds.js';
import { eachRound } from './throughput.js';
import type { Workload } from './workload.js';

const MOST_SECONDS = 300;

/** Cache space per record: nginx counts whole file blocks. */
const FILE_BLOCK_BYTES = 4096;

/** Seed for the requests that fill the caches, different from the seeds of the rounds. */
const FILLING = 1000;

/** crawler: readers of records, with a cache for a fifth of them, next to a crawler that requests each name once. */
export const crawler: Workload = async (bench) => {
  const { crew, plan } = bench;
  const { tailHandles: handles, length } = plan;
  const upstream = await crew.start(startUpstream('bare'));
  const env = { CACHE_FOUND_MAX_ENTRIES: String(Math.ceil(handles / 5)) };
  const peers = [
    await crew.start(startProxy({ upstreamUrl: upstream.url, env })),
    ...(await startCompared(bench, upstream.url, env)),
  ];
  const filling = writeTargets(crawledTargets({ handles, length: 2 * handles, seed: FILLING }));
  for (const { url } of peers) await driveOnce({ url, targets: filling, mostSeconds: MOST_SECONDS });
  const targetsOf = eachRound((seed) => crawledTargets({ handles, length, seed }));
  const rows = await takeTurns(bench, { peers, targetsOf, upstream });
  const crawled = 1000 / CRAWLED_EVERY;
  const withReaders = (of: Figures): Figures =>
    of.upstreamPer1000 === undefined
      ? of
      : { ...of, readerHitsPercent: 100 - ((of.upstreamPer1000 - crawled) * 100) / (1000 - crawled) };
  return {
    about: `${handles} records, Zipf 0.7, a fifth of them in the cache; one request in ${CRAWLED_EVERY} is for a name that is requested once`,
    rows: rows.map(({ peer, median, rounds }) => ({
      peer,
      median: withReaders(median),
      rounds: rounds.map(withReaders),
    })),
  };
};

export const tail: Workload = async (bench) => {
  const { crew, plan, say } = bench;
  const { tailHandles: handles, length } = plan;
  const cached = Math.ceil(handles / 5);
  const { url: upstreamUrl } = await crew.start(startUpstream('bare'));
  const env = { CACHE_FOUND_MAX_ENTRIES: String(cached) };
  const redirecting = await crew.start(startProxy({ upstreamUrl, place: 'upstream' }));
  const maxBytes = cached * FILE_BLOCK_BYTES;
  const peers = [
    await crew.start(startProxy({ upstreamUrl, env })),
    ...(await startCompared(bench, upstreamUrl, env)),
    await crew.startIfInstalled(() => startNginx(upstreamUrl, { redirectsUrl: redirecting.url, maxBytes })),
    await crew.startIfInstalled(() => startHdlProxy(plan.hdlproxy)),
  ].filter((peer) => peer !== undefined);
  const filling = writeTargets(tailTargets({ handles, length: handles, seed: FILLING }));
  for (const { url, name } of peers) {
    await driveOnce({ url, targets: filling, mostSeconds: MOST_SECONDS });
    say(`  ${name} is filled`);
  }
  const targetsOf = eachRound((seed) => tailTargets({ handles, length, seed }));
  return {
    about: `${handles} handles, Zipf 0.7, a fifth of them in the cache: 80 % redirects, 10 % records, 5 % unknown, 5 % filters and other spellings`,
    rows: await takeTurns(bench, { peers, targetsOf, hasNotFound: true }),
  };
};
