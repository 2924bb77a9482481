// redirect-cold and redirect-tail: each redirect once, compared with the same records through the record
// interface.
import { driveOnce, writeTargets } from '../drive/drive.js';
import { startHdlProxy } from '../peers/hdlproxy.js';
import { OURS, type Peer } from '../peers/peer.js';
import { startCompared, startProxy } from '../peers/proxy.js';
import { startUpstream } from '../peers/upstream.js';
import { cpuSeconds } from '../proc.js';
import { nameOf, redirectTargetOf, targetOf } from '../records.js';
import { type Figures, Ledger } from '../results.js';
import type { Bench, Workload } from './workload.js';

export const recordsOf = (peer: string): string => `${peer}, by the record interface`;
export const RECORDS = recordsOf(OURS);

const MOST_SECONDS = 60;

export const redirectCold: Workload = async (bench) => ({
  about: 'every request a new handle by /<handle>, 64 connections, over a bare upstream',
  rows: await measureOnce(bench, { isInMemory: false }),
});

export const redirectTail: Workload = async (bench) => ({
  about: 'records in memory, each requested once by /<handle>, 64 connections',
  rows: await measureOnce(bench, { isInMemory: true }),
});

async function measureOnce(bench: Bench, { isInMemory }: { isInMemory: boolean }) {
  const { plan, crew, say } = bench;
  const { url: upstreamUrl } = await crew.start(startUpstream('bare'));
  const peers = [
    await crew.start(startProxy({ upstreamUrl })),
    ...(await startCompared(bench, upstreamUrl)),
    await crew.startIfInstalled(() => startHdlProxy(plan.hdlproxy)),
  ].filter((peer) => peer !== undefined);
  const count = 4 * plan.misses;
  let last = 0;
  const ask = async (peer: Peer, writeTarget: (name: string) => string): Promise<Figures> => {
    const from = last + 1;
    last += count;
    const names = Array.from({ length: count }, (_, at) => nameOf(from + at));
    if (isInMemory)
      await drive(
        peer,
        names.map((name) => targetOf(name)),
      );
    return drive(peer, names.map(writeTarget));
  };
  const ledger = new Ledger();
  // Runs an extra first round, which warms up the code.
  for (let round = 0; round <= plan.rounds; round++) {
    for (const peer of peers) {
      const redirects = await ask(peer, redirectTargetOf);
      const records = await ask(peer, (name) => targetOf(name));
      if (round === 0) continue;
      ledger.add(peer.name, redirects);
      ledger.add(recordsOf(peer.name), records);
      say(`  round ${round}: ${peer.name} ${Math.round(redirects.cpuMicroseconds ?? 0)} µs`);
    }
  }
  return ledger.rows();
}

async function drive({ url, pid }: Peer, targets: readonly string[]): Promise<Figures> {
  const before = cpuSeconds(pid);
  const driven = await driveOnce({ url, targets: writeTargets(targets), mostSeconds: MOST_SECONDS });
  const { answers, seconds, p50Ms, p99Ms, badStatus, broken } = driven;
  return {
    answersPerSecond: answers / seconds,
    p50Ms,
    p99Ms,
    cpuMicroseconds: ((cpuSeconds(pid) - before) * 1e6) / answers,
    wrong: badStatus + broken,
  };
}
