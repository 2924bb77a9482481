// Writes a table of workloads by peer: responses per second, and this proxy's ratio to each peer.
import { OURS } from '../peers/peer.js';
import { type Result, type Row, ratioOf, rowOf, speedOf, spreadOf } from '../results.js';
import { align, writeFigure, writeRatio } from './table.js';

/** Returns an empty string unless at least two workloads compare peers. */
export function writeSummary(results: readonly Result[]): string {
  const comparing = results.filter(
    (result) => speedsIn(result).includes(OURS) && speedsIn(result).length > 1,
  );
  const peers = peersOf(comparing);
  if (comparing.length < 2) return '';
  const lines = comparing.map((result) => [result.workload, ...peers.map((peer) => writeCell(result, peer))]);
  return `answers/s, and ${OURS} : it (lowest–highest of a round)\n\n${align([['', ...peers], ...lines])}\n`;
}

const speedsIn = ({ rows }: Result): string[] =>
  rows.filter(({ median }) => speedOf(median) !== undefined).map(({ peer }) => peer);

/** Returns the peers of more than one workload, in table order. */
function peersOf(results: readonly Result[]): string[] {
  const all = results.flatMap(speedsIn);
  return [...new Set(all)].filter((peer) => all.filter((other) => other === peer).length > 1);
}

function writeCell(result: Result, peer: string): string {
  const [ours, row] = [rowOf(result, OURS), rowOf(result, peer)];
  if (ours === undefined || row === undefined) return '';
  const ratio = row === ours ? undefined : ratioOf(ours, row);
  return [writeSpeed(row), ...(ratio === undefined ? [] : [writeRatio(ratio)])].join(', ');
}

function writeSpeed({ rounds }: Row): string {
  const { median, least, most } = spreadOf(rounds.flatMap((figures) => speedOf(figures) ?? []));
  const [low = '', middle = '', high = ''] = [least, median, most].map((speed) =>
    writeFigure(Math.round(speed)),
  );
  return least === most ? middle : `${middle} (${low}–${high})`;
}
