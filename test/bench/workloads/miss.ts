// miss: every request is for a new handle, in front of an upstream that is as fast as possible, to measure a
// miss's overhead.
import { type Driven, driveOnce, writeTargets } from '../drive/drive.js';
import { startBareRelay } from '../peers/bare.js';
import { startNginx } from '../peers/nginx.js';
import { OURS, type Peer } from '../peers/peer.js';
import { startCompared, startProxy, startUnlogged } from '../peers/proxy.js';
import { startRedis } from '../peers/redis.js';
import { type Upstream, startUpstream } from '../peers/upstream.js';
import { startVarnish } from '../peers/varnish.js';
import { type Figures, Ledger } from '../results.js';
import { everyHandle } from '../targets.js';
import type { Bench, Workload } from './workload.js';

export const OURS_WITH_REDIS = `${OURS}, with Redis`;

const MOST_SECONDS = 20;

export const miss: Workload = async (bench) => {
  const { plan, crew, say } = bench;
  const upstream = await crew.start(startUpstream('bare'));
  const peers = await startPeers(bench, upstream);
  const ledger = new Ledger();
  const last = new Map<Peer, number>();
  const ask = (peer: Peer, count: number, connections: number): Promise<Driven> => {
    const from = (last.get(peer) ?? 0) + 1;
    last.set(peer, from + count);
    const targets = writeTargets(everyHandle(count, from));
    return driveOnce({ url: peer.url, targets, connections, mostSeconds: MOST_SECONDS });
  };
  // Warms up the code.
  for (const peer of peers) await ask(peer, 4 * plan.misses, 64);
  for (let round = 0; round < plan.rounds; round++) {
    const direct = await ask(upstream, plan.misses, 1);
    for (const peer of [upstream, ...peers]) {
      const alone = peer === upstream ? direct : await ask(peer, plan.misses, 1);
      const busy = await ask(peer, 4 * plan.misses, 64);
      ledger.add(peer.name, figuresOf({ alone, busy, direct }));
      say(`  round ${round + 1}: ${peer.name} ${alone.p50Ms.toFixed(3)} ms`);
    }
  }
  return { about: 'every request a new handle, one caller, over a bare upstream', rows: ledger.rows() };
};

async function startPeers(bench: Bench, { url: upstreamUrl }: Upstream): Promise<Peer[]> {
  const { crew } = bench;
  const proxy = await crew.start(startProxy({ upstreamUrl }));
  const compared = await startCompared(bench, upstreamUrl);
  const unlogged = await crew.start(startUnlogged(upstreamUrl));
  const relay = await crew.start(startBareRelay(upstreamUrl));
  const redis = await crew.startIfInstalled(startRedis);
  const withRedis =
    redis &&
    (await crew.start(startProxy({ upstreamUrl, name: OURS_WITH_REDIS, env: { REDIS_URL: redis.url } })));
  const nginx = await crew.startIfInstalled(() => startNginx(upstreamUrl));
  const varnish = await crew.startIfInstalled(() => startVarnish(upstreamUrl));
  return [proxy, unlogged, ...compared, withRedis, relay, nginx, varnish].filter(
    (peer) => peer !== undefined,
  );
}

function figuresOf({ alone, busy, direct }: Record<'alone' | 'busy' | 'direct', Driven>): Figures {
  return {
    p50Ms: alone.p50Ms,
    p99Ms: alone.p99Ms,
    addedP50Ms: alone.p50Ms - direct.p50Ms,
    addedP99Ms: alone.p99Ms - direct.p99Ms,
    busyAnswersPerSecond: busy.answers / busy.seconds,
    wrong: alone.badStatus + alone.broken + busy.badStatus + busy.broken,
  };
}
