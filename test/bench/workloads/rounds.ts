// Runs peers alternately under the same load; each round starts with a different peer.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Driven, type TargetFile, drive } from '../drive/drive.js';
import type { Peer } from '../peers/peer.js';
import type { Upstream } from '../peers/upstream.js';
import { cpuSeconds } from '../proc.js';
import { type Figures, Ledger, type Row } from '../results.js';
import type { Bench } from './workload.js';

export interface Load {
  peers: readonly Peer[];
  /** Undefined if each peer has its own load. */
  targetsOf?: (round: number) => TargetFile;
  /** Upstream at which to count requests. */
  upstream?: Pick<Upstream, 'asked'>;
  /** Whether the load includes 404s. */
  hasNotFound?: boolean;
  more?: (peer: Peer) => Figures;
}

/** Pause before each peer, so that all run under the same conditions. */
const REST_MS = 100;

export async function takeTurns({ plan, say }: Bench, load: Load): Promise<Row[]> {
  const ledger = new Ledger();
  // The first round runs the peers in list order, which is also the order of the rows.
  for (let round = 0; round < plan.rounds; round++) {
    const targets = load.targetsOf?.(round);
    for (const peer of rotated(load.peers, round)) {
      await sleep(REST_MS);
      const figures = await measure(peer, {
        ...load,
        driveOnce: () => driveOf(peer, targets, plan.seconds),
      });
      ledger.add(peer.name, figures);
      say(`  round ${round + 1}: ${peer.name} ${Math.round(figures.answersPerSecond ?? 0)} answers/s`);
    }
  }
  return ledger.rows();
}

function driveOf(peer: Peer, targets: TargetFile | undefined, seconds: number): Promise<Driven> {
  if (peer.drive !== undefined) return peer.drive(seconds);
  const own = peer.targets ?? targets;
  if (own === undefined) throw new Error(`there is no load for ${peer.name}`);
  return drive({ url: peer.url, targets: own, seconds });
}

function rotated<T>(list: readonly T[], by: number): T[] {
  const at = by % list.length;
  return [...list.slice(at), ...list.slice(0, at)];
}

interface Turn extends Load {
  driveOnce: () => Promise<Driven>;
}

async function measure(peer: Peer, { driveOnce, upstream, hasNotFound, more }: Turn): Promise<Figures> {
  const askedBefore = await upstream?.asked();
  const cpuBefore = cpuSeconds(peer.pid);
  const driven = await driveOnce();
  const cpu = cpuSeconds(peer.pid) - cpuBefore;
  const asked = await upstream?.asked();
  return {
    ...figuresOf(driven, hasNotFound === true),
    cpuMicroseconds: (cpu * 1e6) / driven.answers,
    ...(asked !== undefined && { upstreamPer1000: ((asked - (askedBefore ?? 0)) * 1000) / driven.answers }),
    ...more?.(peer),
  };
}

function figuresOf(
  { answers, seconds, p50Ms, p99Ms, badStatus, broken }: Driven,
  hasNotFound: boolean,
): Figures {
  return {
    answersPerSecond: answers / seconds,
    p50Ms,
    p99Ms,
    ...(hasNotFound ? { notFound: badStatus, wrong: broken } : { wrong: badStatus + broken }),
  };
}
