// How far a long command is: a bar on a terminal, plain lines elsewhere.
import { SingleBar } from 'cli-progress';

export interface Progress {
  step: () => void;
  stop: () => void;
}

const TOLD_MS = 2000;
const FORMAT = '{bar} {percentage} % | {value} of {total} | {rate}/s | {eta_formatted} left';

export function createProgress(total: number): Progress {
  const startedAt = Date.now();
  const rateOf = (count: number): number => Math.round((count * 1000) / Math.max(1, Date.now() - startedAt));
  return process.stderr.isTTY ? createBar(total, rateOf) : createLines(total, rateOf);
}

function createBar(total: number, rateOf: (count: number) => number): Progress {
  const bar = new SingleBar({ format: FORMAT, hideCursor: true, etaBuffer: 500 });
  bar.start(total, 0, { rate: 0 });
  let count = 0;
  return {
    step() {
      bar.update(++count, { rate: rateOf(count) });
    },
    stop() {
      bar.stop();
    },
  };
}

function createLines(total: number, rateOf: (count: number) => number): Progress {
  let count = 0;
  let toldAt = Date.now();
  return {
    step() {
      count++;
      if (Date.now() - toldAt < TOLD_MS) return;
      toldAt = Date.now();
      const rate = rateOf(count);
      const left = rate === 0 ? '' : `, ${Math.ceil((total - count) / rate)} s left`;
      process.stderr.write(`${count} of ${total}, ${rate}/s${left}\n`);
    },
    stop: () => undefined,
  };
}
