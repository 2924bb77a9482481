// connections: how evenly connections spread over two workers, counted while they are driven.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Driven, drive, writeTargets } from '../drive/drive.js';
import type { Peer } from '../peers/peer.js';
import { startProxy } from '../peers/proxy.js';
import { startUpstream } from '../peers/upstream.js';
import { connectionsOfEach } from '../proc.js';
import { nameOf, targetOf } from '../records.js';
import type { Figures } from '../results.js';
import { assertRightAnswers } from './check.js';
import { takeTurns } from './rounds.js';
import type { Workload } from './workload.js';

const COUNTS = [16, 64, 1000] as const;

export const nameOfCount = (count: (typeof COUNTS)[number]): string =>
  `${count.toLocaleString('en')} connections`;

export const connections: Workload = async (bench) => {
  const upstream = await bench.crew.start(startUpstream('demo', 10));
  const env = { SERVER_WORKERS: '2' };
  const proxy = await bench.crew.start(startProxy({ upstreamUrl: upstream.url, place: 'pair', env }));
  const target = targetOf(nameOf(1));
  await assertRightAnswers(proxy, [target], upstream.url);
  const targets = writeTargets([target]);
  const port = Number(new URL(proxy.url).port);
  const counted = new Map<string, number[]>();
  const peers = COUNTS.map((opened): Peer => {
    const name = nameOfCount(opened);
    const driveAndCount = async (seconds: number): Promise<Driven> => {
      const count = (): number[] => connectionsOfEach(proxy.pid, port);
      const before = count();
      const driven = drive({ url: proxy.url, targets, seconds, connections: opened });
      await sleep((seconds * 1000) / 2);
      counted.set(
        name,
        count().map((each, at) => each - (before[at] ?? 0)),
      );
      return driven;
    };
    return { ...proxy, name, drive: driveAndCount };
  });
  const more = ({ name }: Peer): Figures => spread(counted.get(name) ?? []);
  const rows = await takeTurns(bench, { peers, more });
  return {
    about: 'the hot load on two workers; connections of each, counted in the middle of a round',
    rows,
  };
};

/** The primary has none. */
function spread(ofEach: readonly number[]): Figures {
  const [most = 0, least = 0] = ofEach.toSorted((one, other) => other - one);
  return { mostConnections: most, leastConnections: least, connectionShare: most / (most + least) };
}
