// `npm run mutation -- policy --seed 1 --sample 60`: breaks the sources of each area, one mutation at a time, and
// counts the mutations that make a test of the area fail. Prints the others, for a reader to judge.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { AREAS } from './areas.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string', default: '1' }, sample: { type: 'string', default: '100' } },
});

/** Time for one mutation. After that, the code waits or loops, which counts as noticed. */
const LIMIT_MS = 180_000;
const WORKER = fileURLToPath(new URL('worker.js', import.meta.url));
const print = (text) => process.stdout.write(`${text}\n`);

/** Runs a worker from the given mutation on, until it ends or hangs, and passes on its verdicts. */
async function runFrom(at, area, onVerdict) {
  const args = [WORKER, area, values.seed, values.sample, String(at)];
  const worker = spawn(process.execPath, args, { detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
  const end = () => {
    try {
      process.kill(-Number(worker.pid), 'SIGKILL');
    } catch {
      // It has ended.
    }
  };
  let timer = setTimeout(end, LIMIT_MS);
  createInterface({ input: worker.stdout }).on('line', (line) => {
    if (!line.startsWith('{')) return;
    clearTimeout(timer);
    timer = setTimeout(end, LIMIT_MS);
    onVerdict(JSON.parse(line));
  });
  await once(worker, 'close');
  clearTimeout(timer);
  end();
}

async function measure(area) {
  const survived = [];
  let [at, total, hung] = [0, 1, 0];
  while (at < total) {
    await runFrom(at, area, (verdict) => {
      total = verdict.total;
      if (verdict.mutation === undefined) return;
      at++;
      if (verdict.isSurvivor) survived.push(verdict.mutation);
    });
    if (at === 0) throw new Error(`${area}: the tests fail, or take too long, without a mutation`);
    // The worker has ended before it could judge this mutation.
    if (at < total) hung++;
    at++;
  }
  const percent = Math.floor((100 * (total - survived.length)) / total);
  print(
    `${area}: ${total - survived.length} of ${total} mutations noticed (${percent} %), ${hung} by a time limit`,
  );
  for (const { path, line, was, replacement } of survived) {
    print(`  ${path}:${line}  ${was.replaceAll(/\s+/g, ' ')}  ->  ${replacement.replaceAll(/\s+/g, ' ')}`);
  }
}

for (const area of positionals.length > 0 ? positionals : Object.keys(AREAS)) await measure(area);
