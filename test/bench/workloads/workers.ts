// workers: the hot load on one worker and on two.
import { writeTargets } from '../drive/drive.js';
import { startProxy } from '../peers/proxy.js';
import type { Peer } from '../peers/peer.js';
import { startUpstream } from '../peers/upstream.js';
import { nameOf, targetOf } from '../records.js';
import { assertRightAnswers } from './check.js';
import { takeTurns } from './rounds.js';
import type { Workload } from './workload.js';

export const ONE_WORKER = 'one worker';
export const TWO_WORKERS = 'two workers';

export const workers: Workload = async (bench) => {
  const upstream = await bench.crew.start(startUpstream('demo', 10));
  const begin = (name: string, count: number): Promise<Peer> =>
    bench.crew.start(
      startProxy({
        upstreamUrl: upstream.url,
        name,
        place: count === 1 ? 'server' : 'pair',
        env: { SERVER_WORKERS: String(count) },
      }),
    );
  const peers = [await begin(ONE_WORKER, 1), await begin(TWO_WORKERS, 2)];
  const target = targetOf(nameOf(1));
  for (const peer of peers) await assertRightAnswers(peer, [target], upstream.url);
  const targets = writeTargets([target]);
  const rows = await takeTurns(bench, {
    peers,
    targetsOf: () => targets,
  });
  return { about: 'the hot load; with two cores the driver needs a part of one of them', rows };
};
