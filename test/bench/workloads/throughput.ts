// hot, zipf and redirect: responses from memory at full speed, compared with alternative caches.
import { CONNECTIONS, driveOnce, writeTargets } from '../drive/drive.js';
import { startBare } from '../peers/bare.js';
import { startNginx } from '../peers/nginx.js';
import type { Peer } from '../peers/peer.js';
import { type Proxy, startCompared, startProxy } from '../peers/proxy.js';
import { type Upstream, startUpstream } from '../peers/upstream.js';
import { startVarnish } from '../peers/varnish.js';
import { nameOf, redirectTargetOf, targetOf } from '../records.js';
import { everyHandle, redirectTargets, zipfTargets } from '../targets.js';
import { assertRightAnswers } from './check.js';
import { type Load, takeTurns } from './rounds.js';
import type { Bench, Workload } from './workload.js';
import { fixed } from '../../support/fixed.js';

const NOT_PREPARED = 'without prepared responses';
export const LOGGING = 'logging each request';

export const hot: Workload = async (bench) => {
  const upstream = await bench.crew.start(startUpstream('demo', 10));
  const peers = await startPeers(bench, upstream.url);
  const env = { LOG_REQUESTS: 'all' };
  peers.push(await bench.crew.start(startProxy({ upstreamUrl: upstream.url, name: LOGGING, env })));
  const target = targetOf(nameOf(1));
  for (const peer of peers) await assertRightAnswers(peer, [target], upstream.url);
  const targets = writeTargets([target]);
  const rows = await takeTurns(bench, { peers, targetsOf: () => targets, upstream });
  return { about: 'one handle, 64 connections kept alive', rows };
};

/** Servers shared by `zipf` and `redirect`. */
export interface Filled {
  peers: readonly Peer[];
  demo: Upstream;
  /** The proxy behind the URL caches, which cannot create redirects themselves. */
  redirecting: Proxy;
}

export async function startFilledPeers(bench: Bench): Promise<Filled> {
  const demo = await bench.crew.start(startUpstream('demo', bench.plan.handles));
  const redirecting = await bench.crew.start(startProxy({ upstreamUrl: demo.url, place: 'upstream' }));
  return { demo, redirecting, peers: await startPeers(bench, demo.url, redirecting.url) };
}

export async function zipf(bench: Bench, { peers, demo }: Filled): ReturnType<Workload> {
  const { handles, length } = bench.plan;
  await warm(bench, { peers, targets: everyHandle(handles), sourceOf: () => demo.url });
  const targetsOf = eachRound((seed) => zipfTargets({ handles, length, seed }));
  const rows = await takeTurns(bench, { peers, targetsOf, upstream: demo });
  return { about: `${handles} handles, Zipf 0.99, all in memory`, rows };
}

export async function redirect(bench: Bench, { peers, redirecting }: Filled): ReturnType<Workload> {
  const { handles, length } = bench.plan;
  const targets = everyHandle(handles).map((_, at) => redirectTargetOf(nameOf(at + 1)));
  await warm(bench, { peers, targets, sourceOf: () => redirecting.url });
  const targetsOf = eachRound((seed) => redirectTargets({ handles, length, seed }));
  const rows = await takeTurns(bench, { peers, targetsOf });
  return { about: `/<handle> to its address: ${handles} handles, Zipf 0.99, all in memory`, rows };
}

/**
 * Creates a file of new requests for each round, because a URL cache must not get the same requests again.
 */
export function eachRound(draw: (seed: number) => string[]): NonNullable<Load['targetsOf']> {
  return (round) => writeTargets(draw(round + 1));
}

async function startPeers(bench: Bench, upstreamUrl: string, redirectsUrl = upstreamUrl): Promise<Peer[]> {
  const { crew } = bench;
  const proxy = await crew.start(startProxy({ upstreamUrl }));
  const env = fixed({ http: { responseCache: { maxEntries: 0 } } });
  return [
    proxy,
    ...(await startCompared(bench, upstreamUrl)),
    await crew.start(startBare(proxy.url)),
    await crew.start(startProxy({ upstreamUrl, name: NOT_PREPARED, env })),
    await crew.startIfInstalled(() => startNginx(upstreamUrl, { redirectsUrl })),
    await crew.startIfInstalled(() => startVarnish(upstreamUrl, redirectsUrl)),
  ].filter((peer) => peer !== undefined);
}

interface Warming {
  peers: readonly Peer[];
  targets: readonly string[];
  /** Returns the URL of a server with the correct response to a target. */
  sourceOf: (target: string) => string;
}

const MOST_SECONDS = 120;

/**
 * Requests every handle twice from every peer, because this proxy caches a response on the second request.
 */
export async function warm({ say }: Bench, { peers, targets, sourceOf }: Warming): Promise<void> {
  const some = [targets[0] ?? '', targets.at(-1) ?? ''];
  const once = writeTargets([...targets, ...targets.slice(-CONNECTIONS)]);
  for (const peer of peers) {
    for (const target of some) await assertRightAnswers(peer, [target], sourceOf(target));
    for (let times = 0; times < 2; times++) {
      const { badStatus, broken } = await driveOnce({
        url: peer.url,
        targets: once,
        mostSeconds: MOST_SECONDS,
      });
      if (badStatus + broken > 0)
        say(`  ${peer.name}: ${badStatus + broken} bad answers while it was filled`);
    }
    say(`  ${peer.name} is filled`);
  }
}
