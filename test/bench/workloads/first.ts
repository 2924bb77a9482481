// first: the first requests after a start, before V8 has optimized the code; half are for new handles.
import { driveOnce, writeTargets } from '../drive/drive.js';
import { startBareRelay } from '../peers/bare.js';
import type { Peer } from '../peers/peer.js';
import { startProxy } from '../peers/proxy.js';
import { startUpstream } from '../peers/upstream.js';
import { cpuSeconds } from '../proc.js';
import { type Figures, Ledger } from '../results.js';
import { firstTargets } from '../targets.js';
import type { Workload } from './workload.js';

/** Number of requests from a single caller, before 64 connections send the others. */
const ALONE = 100;

const RECORDS_PATH = '/api/handles';

const MOST_SECONDS = 60;

export const first: Workload = async ({ plan, crew, compared, say }) => {
  const { url: upstreamUrl } = await crew.start(startUpstream('bare'));
  const targets = firstTargets(plan.firstRequests);
  // The relay makes no redirects.
  const records = targets.map((target) => (target.startsWith(RECORDS_PATH) ? target : RECORDS_PATH + target));
  const peers: [targets: string[], startPeer: () => Promise<Peer>][] = [
    [targets, () => startProxy({ upstreamUrl })],
    [records, () => startBareRelay(upstreamUrl)],
  ];
  if (compared !== undefined) peers.push([targets, () => startProxy({ upstreamUrl, build: compared })]);
  const ledger = new Ledger();
  for (let round = 1; round <= plan.rounds; round++) {
    for (const [asked, startPeer] of peers) {
      const peer = await startPeer();
      let figures: Figures;
      try {
        figures = await measure(peer, asked);
      } finally {
        await peer.stop();
      }
      ledger.add(peer.name, figures);
      say(`  round ${round}: ${peer.name} ${Math.round(figures.answersPerSecond ?? 0)} answers/s`);
    }
  }
  const about = `the first ${plan.firstRequests} requests after a start, half of them for new handles; p50 and p99 of the first ${ALONE}`;
  return { about, rows: ledger.rows() };
};

async function measure({ url, pid }: Peer, targets: readonly string[]): Promise<Figures> {
  const before = cpuSeconds(pid);
  const drive = (some: readonly string[], connections: number) =>
    driveOnce({ url, targets: writeTargets(some), connections, mostSeconds: MOST_SECONDS });
  const alone = await drive(targets.slice(0, ALONE), 1);
  const busy = await drive(targets.slice(ALONE), 64);
  const answers = alone.answers + busy.answers;
  return {
    answersPerSecond: answers / (alone.seconds + busy.seconds),
    p50Ms: alone.p50Ms,
    p99Ms: alone.p99Ms,
    cpuMicroseconds: ((cpuSeconds(pid) - before) * 1e6) / answers,
    wrong: alone.badStatus + alone.broken + busy.badStatus + busy.broken,
  };
}
