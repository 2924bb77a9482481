// herd: concurrent callers request one cold handle in front of a slow upstream.
import { get } from '../drive/callers.js';
import { startNginx } from '../peers/nginx.js';
import { OURS } from '../peers/peer.js';
import { startProxy } from '../peers/proxy.js';
import { startRedis } from '../peers/redis.js';
import { type Upstream, startUpstream } from '../peers/upstream.js';
import { startVarnish } from '../peers/varnish.js';
import { PREFIX, nameOf, targetOf } from '../records.js';
import { type Figures, Ledger } from '../results.js';
import type { Bench, Workload } from './workload.js';

export const TWO_INSTANCES = `${OURS}, two instances on one Redis`;

const DELAY_MS = 500;

interface Door {
  name: string;
  /** Servers among which to spread the callers. */
  urls: string[];
}

export const herd: Workload = async (bench) => {
  const { plan, say } = bench;
  const upstream = await bench.crew.start(startUpstream('demo', plan.rounds * MOST_DOORS));
  const doors = await openDoors(bench, upstream);
  const ledger = new Ledger();
  await upstream.tell(`delay=${DELAY_MS}`);
  let handles = 0;
  for (let round = 0; round < plan.rounds; round++) {
    for (const door of doors) {
      const figures = await callAll(door, { name: nameOf(++handles), callers: plan.callers, upstream });
      ledger.add(door.name, figures);
      say(`  round ${round + 1}: ${door.name} ${figures.upstreamRequests ?? 0} upstream requests`);
    }
  }
  const about = `${plan.callers} callers of one cold handle, the upstream answers in ${DELAY_MS} ms`;
  return { about, rows: ledger.rows() };
};

const MOST_DOORS = 4;

async function openDoors({ crew }: Bench, { url: upstreamUrl }: Upstream): Promise<Door[]> {
  const one = await crew.start(startProxy({ upstreamUrl }));
  const redis = await crew.startIfInstalled(startRedis);
  const instances: Door[] = [];
  if (redis !== undefined) {
    const env = { REDIS_URL: redis.url };
    const begin = async (): Promise<string> => (await crew.start(startProxy({ upstreamUrl, env }))).url;
    instances.push({ name: TWO_INSTANCES, urls: [await begin(), await begin()] });
  }
  const nginx = await crew.startIfInstalled(() => startNginx(upstreamUrl));
  const varnish = await crew.startIfInstalled(() => startVarnish(upstreamUrl));
  const others = [nginx, varnish].filter((peer) => peer !== undefined);
  const alone = ({ name, url }: { name: string; url: string }): Door => ({ name, urls: [url] });
  return [alone(one), ...instances, ...others.map(alone)];
}

interface Call {
  name: string;
  callers: number;
  upstream: Upstream;
}

async function callAll({ urls }: Door, { name, callers, upstream }: Call): Promise<Figures> {
  const begunAt = performance.now();
  const answers = await Promise.all(
    Array.from({ length: callers }, (_, at) =>
      get(`${urls[at % urls.length] ?? ''}${targetOf(name)}`).catch(() => undefined),
    ),
  );
  return {
    upstreamRequests: await upstream.tell(`askedFor=${PREFIX}/${name}`),
    lastMs: performance.now() - begunAt,
    wrong: answers.filter((answer) => answer?.status !== 200 || !answer.text.includes(`objects/${name}`))
      .length,
  };
}
