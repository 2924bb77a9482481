// Runs the simulator over many seeds: `npm run simulate -- --seeds 1..100`.
import { parseArgs } from 'node:util';
import { FAULT_NAMES, type FaultName } from './fault-driver.js';
import { MUTATIONS, type Mutation } from './mutations.js';
import { PLUGIN_MUTATIONS } from './plugin-mutations.js';
import { PLAIN, WITH_FRONT, type RunOptions, type RunResult, run } from './run.js';
import type { WorldOptions } from './world.js';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1..20' },
    seconds: { type: 'string', default: '120' },
    /** Comma-separated names of the faults to inject, by default all. */
    faults: { type: 'string' },
    /** A part of the protocol to disable (see mutations.ts). */
    mutation: { type: 'string' },
    /** Whether instances have a change feed and a mirror, by default in every other seed. */
    plugins: { type: 'string' },
    /** Whether a cache in front is simulated, with the faults with which it may serve no older record. */
    front: { type: 'boolean', default: false },
    /** Whether states, bans and pending invalidations have low limits, by default in every other seed. */
    'low-limits': { type: 'string' },
    lines: { type: 'string', default: '80' },
    /** Whether to continue after a failure. */
    all: { type: 'boolean', default: false },
  },
});

const print = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

function seedsOf(range: string): number[] {
  const [first = 1, last = first] = range.split('..').map(Number);
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}

function addTo(sums: Map<string, number>, counts: Iterable<[string, number]>): void {
  for (const [name, count] of counts) sums.set(name, (sums.get(name) ?? 0) + count);
}

function report({ seed, hash, violation, lines }: RunResult): void {
  if (violation === undefined) return;
  print(`seed ${seed}: ${violation.message}`);
  print(`trace ${hash}, its last lines:`);
  for (const line of lines) print(`  ${line.slice(0, 300)}`);
}

function mutationOf(name: string | undefined): Mutation | undefined {
  if (name === undefined) return undefined;
  const all = { ...MUTATIONS, ...PLUGIN_MUTATIONS };
  const mutation = all[name];
  if (mutation === undefined) throw new Error(`a mutation is one of: ${Object.keys(all).join(', ')}`);
  return mutation;
}

async function runAll(options: RunOptions, sums: Map<string, number>): Promise<number> {
  let failures = 0;
  for (const seed of seedsOf(values.seeds)) {
    const result = await run(seed, options);
    addTo(sums, Object.entries(result.counts));
    addTo(
      sums,
      [...result.faults].map(([name, count]) => [`fault: ${name}`, count]),
    );
    addTo(sums, [
      ['seeds', 1],
      ['events', result.events],
      ['simulated seconds', result.seconds],
    ]);
    report(result);
    if (result.violation !== undefined) failures++;
    if (failures > 0 && !values.all) break;
  }
  return failures;
}

/** Returns an option that is given as `true` or `false`. */
const given = (name: 'hasPlugins' | 'hasLowLimits', text: string | undefined): Partial<WorldOptions> =>
  text === undefined ? {} : { [name]: text === 'true' };

function optionsWith(mutation: Mutation | undefined): RunOptions {
  const base = mutation ?? (values.front ? WITH_FRONT : undefined);
  const faults = (values.faults?.split(',') as FaultName[] | undefined) ?? base?.faults;
  const { plugins, 'low-limits': lowLimits } = values;
  const world = {
    ...(mutation && PLAIN),
    ...base?.world,
    ...given('hasPlugins', plugins),
    ...given('hasLowLimits', lowLimits),
  };
  return {
    seconds: Number(values.seconds),
    keptLines: Number(values.lines),
    ...(faults && { faults }),
    world,
  };
}

async function main(): Promise<void> {
  const mutation = mutationOf(values.mutation);
  mutation?.apply();
  const sums = new Map<string, number>(FAULT_NAMES.map((name) => [`fault: ${name}`, 0]));
  const startedAt = performance.now();
  const failures = await runAll(optionsWith(mutation), sums);
  for (const [name, sum] of sums) print(`${name}: ${Math.round(sum)}`);
  print(`simulated hours: ${((sums.get('simulated seconds') ?? 0) / 3600).toFixed(2)}`);
  print(`real seconds: ${((performance.now() - startedAt) / 1000).toFixed(1)}`);
  print(`failures: ${failures}`);
  if (failures > 0) process.exitCode = 1;
}

await main();
