// mixed: realistic requests in front of an upstream limited to 1,000 requests per second. servers: the same
// load over three prefixes, each on a separate Handle server.
import { startNginx, startRoutingNginx } from '../peers/nginx.js';
import type { Peer } from '../peers/peer.js';
import { startCompared, startProxy, startUnlogged } from '../peers/proxy.js';
import { type Upstream, startUpstream } from '../peers/upstream.js';
import { startVarnish } from '../peers/varnish.js';
import { PREFIX, PREFIXES, nameOf, targetOf } from '../records.js';
import { mixedTargets, spreadOver } from '../targets.js';
import { assertRightAnswers } from './check.js';
import { takeTurns } from './rounds.js';
import { eachRound, warm } from './throughput.js';
import type { Bench, Workload } from './workload.js';

/** A Handle server and its prefix. */
interface Source {
  prefix: string;
  upstream: Upstream;
}

const WHAT = '30 % filters, 10 % other spellings, 5 % not found, 2 % auth=true, 1 % with credentials';

export const mixed: Workload = async (bench) => {
  const { handles, capacityPerSecond } = bench.plan;
  const upstream = await bench.crew.start(startUpstream('demo', handles));
  const peers = [
    await bench.crew.start(startProxy({ upstreamUrl: upstream.url })),
    await bench.crew.start(startUnlogged(upstream.url)),
    ...(await startCompared(bench, upstream.url)),
    await bench.crew.startIfInstalled(() => startNginx(upstream.url)),
    await bench.crew.startIfInstalled(() => startVarnish(upstream.url)),
  ].filter((peer) => peer !== undefined);
  return {
    about: `zipf with ${WHAT}; the upstream does ${capacityPerSecond} requests a second`,
    rows: await driveMixed(bench, { peers, sources: [{ prefix: PREFIX, upstream }] }),
  };
};

/** Measures three servers: two with one prefix each, and a third with all other prefixes. */
export const servers: Workload = async (bench) => {
  const { handles, capacityPerSecond } = bench.plan;
  const count = Math.ceil(handles / PREFIXES.length);
  const sources: Source[] = [];
  for (const prefix of PREFIXES) {
    sources.push({ prefix, upstream: await bench.crew.start(startUpstream('demo', count, prefix)) });
  }
  const routes = sources.map(({ prefix, upstream: { url } }, at) =>
    at === sources.length - 1
      ? { location: '/', prefixes: ['*'], url }
      : { location: `~* ^/api/handles/${prefix.replaceAll('.', '\\.')}/`, prefixes: [prefix], url },
  );
  const env = { UPSTREAMS: JSON.stringify(routes.map(({ prefixes, url }) => ({ prefixes, url }))) };
  const peers = [
    await bench.crew.start(startProxy({ env })),
    await bench.crew.startIfInstalled(() => startRoutingNginx(routes)),
  ].filter((peer) => peer !== undefined);
  return {
    about: `the same over ${sources.length} prefixes and servers; together they do ${capacityPerSecond} requests a second`,
    rows: await driveMixed(bench, { peers, sources }),
  };
};

interface Mixed {
  peers: readonly Peer[];
  sources: readonly Source[];
}

async function driveMixed(bench: Bench, { peers, sources }: Mixed): ReturnType<typeof takeTurns> {
  const { handles, length, capacityPerSecond } = bench.plan;
  const prefixes = sources.map(({ prefix }) => prefix);
  const targets = Array.from({ length: handles }, (_, at) => {
    const { name, prefix } = spreadOver(prefixes, at + 1);
    return targetOf(name, prefix);
  });
  const sourceOf = (target: string): string =>
    sources.find(({ prefix }) => target.startsWith(targetOf('', prefix)))?.upstream.url ?? '';
  // All peers cache every record under its plain URL before the load starts.
  await warm(bench, { peers, targets, sourceOf });
  for (const peer of peers) {
    for (const source of sources) await assertRightAnswers(peer, questionsTo(source), source.upstream.url);
  }
  for (const { upstream } of sources) await upstream.tell(`limit=${capacityPerSecond / sources.length}`);
  const targetsOf = eachRound((seed) => mixedTargets({ handles, length, seed, prefixes }));
  return takeTurns(bench, {
    peers,
    targetsOf,
    upstream: { asked: () => askedAt(sources) },
    hasNotFound: true,
  });
}

function questionsTo({ prefix }: Source): string[] {
  const target = targetOf(nameOf(1), prefix);
  return [
    ...[target, `${target}?type=URL`, `${target}?index=1&index=2`, `${target}?auth=true`],
    targetOf('NONE', prefix),
    `/api/handles/${prefix.toLowerCase()}%2F${nameOf(1)}`,
  ];
}

async function askedAt(sources: readonly Source[]): Promise<number> {
  const asked = await Promise.all(sources.map(({ upstream }) => upstream.asked()));
  return asked.reduce((sum, count) => sum + count, 0);
}
