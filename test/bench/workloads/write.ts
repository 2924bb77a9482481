// write: the Zipf load with 1 % PUTs, and separate writes after which readers check for the old record.
import { get, put } from '../drive/callers.js';
import { type TargetFile, drive, writeTargets } from '../drive/drive.js';
import { startNginx } from '../peers/nginx.js';
import { OURS } from '../peers/peer.js';
import { type Proxy, redisErrorsOf, startProxy } from '../peers/proxy.js';
import { startRedis } from '../peers/redis.js';
import { type Upstream, startUpstream } from '../peers/upstream.js';
import { startVarnish } from '../peers/varnish.js';
import { nameOf, targetOf, valuesOf, versionIn } from '../records.js';
import { type Figures, Ledger } from '../results.js';
import { writingTargets } from '../targets.js';
import { TWO_INSTANCES } from './herd.js';
import type { Bench, Workload } from './workload.js';

interface Door {
  name: string;
  /** Writes go to the first URL, reads to all. */
  urls: string[];
  /** Instances on which to count Redis errors, because such errors excuse late invalidations. */
  instances?: readonly Proxy[];
}

/** Number of handles in the load; the watched handles follow them. */
const LOAD_HANDLES = 1000;
const WATCHED_HANDLES = 50;
const PROBES = 4;
/** Maximum time after a write for which readers look for the old record. */
const GIVE_UP_MS = 1000;

export const write: Workload = async (bench) => {
  const { plan, say } = bench;
  const upstream = await bench.crew.start(startUpstream('demo', LOAD_HANDLES + WATCHED_HANDLES));
  const doors = await openDoors(bench, upstream);
  const targets = writeTargets(writingTargets({ handles: LOAD_HANDLES, length: plan.length / 4, seed: 1 }));
  const ledger = new Ledger();
  let version = 0;
  for (let round = 0; round < plan.rounds; round++) {
    for (const door of doors) {
      const figures = await watchWrites(door, { targets, seconds: plan.seconds, next: () => ++version });
      ledger.add(door.name, figures);
      say(`  round ${round + 1}: ${door.name} ${figures.oldAnswers ?? 0} old answers`);
    }
  }
  return {
    about: `the Zipf load with 1 % PUTs; old records looked for on every instance, for ${GIVE_UP_MS} ms at most`,
    rows: ledger.rows(),
  };
};

async function openDoors({ crew }: Bench, { url: upstreamUrl }: Upstream): Promise<Door[]> {
  const one = await crew.start(startProxy({ upstreamUrl }));
  const doors: Door[] = [{ name: OURS, urls: [one.url] }];
  const redis = await crew.startIfInstalled(startRedis);
  if (redis !== undefined) {
    const env = { REDIS_URL: redis.url };
    const instances = [
      await crew.start(startProxy({ upstreamUrl, env })),
      await crew.start(startProxy({ upstreamUrl, env })),
    ];
    doors.push({ name: TWO_INSTANCES, urls: instances.map(({ url }) => url), instances });
  }
  for (const begin of [startNginx, startVarnish]) {
    const peer = await crew.startIfInstalled(() => begin(upstreamUrl));
    if (peer !== undefined) doors.push({ name: peer.name, urls: [peer.url] });
  }
  return doors;
}

interface Watch {
  targets: TargetFile;
  seconds: number;
  next: () => number;
}

async function watchWrites({ urls, instances }: Door, { targets, seconds, next }: Watch): Promise<Figures> {
  const [first = ''] = urls;
  const until = performance.now() + seconds * 1000;
  const load = drive({ url: first, targets, seconds });
  const seen: Seen[] = [];
  while (performance.now() < until) {
    seen.push(await writeAndLook(urls, nameOf(LOAD_HANDLES + 1 + (seen.length % WATCHED_HANDLES)), next()));
  }
  const { answers, seconds: took, badStatus, broken } = await load;
  const redisErrors = await Promise.all((instances ?? []).map(redisErrorsOf));
  return {
    answersPerSecond: answers / took,
    writes: seen.length,
    oldAnswers: seen.reduce((sum, { oldAnswers }) => sum + oldAnswers, 0),
    oldForMs: Math.max(...seen.map(({ oldForMs }) => oldForMs)),
    ...(instances && { redisErrors: redisErrors.reduce((sum, count) => sum + count, 0) }),
    wrong: badStatus + broken,
  };
}

interface Seen {
  oldAnswers: number;
  /** Time from the acknowledgement to the last request that returned the old record. */
  oldForMs: number;
}

async function writeAndLook(urls: readonly string[], name: string, version: number): Promise<Seen> {
  const [first = ''] = urls;
  const target = targetOf(name);
  const everywhere = (): Promise<number[]> =>
    Promise.all(
      urls.flatMap((url) =>
        Array.from({ length: PROBES }, async () => versionIn((await get(url + target)).text)),
      ),
    );
  await everywhere();
  const { status } = await put(first + target, valuesOf(name, version));
  if (status !== 200 && status !== 201) throw new Error(`a PUT was answered with ${status}`);
  const writtenAt = performance.now();
  const seen: Seen = { oldAnswers: 0, oldForMs: 0 };
  for (;;) {
    const askedAt = performance.now() - writtenAt;
    const old = (await everywhere()).filter((found) => found < version).length;
    if (old === 0 || askedAt > GIVE_UP_MS) return seen;
    seen.oldAnswers += old;
    seen.oldForMs = askedAt;
  }
}
