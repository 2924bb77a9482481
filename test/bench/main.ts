// `npm run bench`: measures the proxy and its peers alternately, prints tables, and writes the figures as
// JSON.
import { writeFileSync } from 'node:fs';
import { pinThisProcess } from './cores.js';
import { describeMachine } from './machine.js';
import { buildCommit } from './peers/build.js';
import { Crew } from './peers/crew.js';
import { type Plan, USAGE, readPlan } from './plan.js';
import { judge, writeVerdict } from './report/goals.js';
import { writeSummary } from './report/summary.js';
import { writeMachine, writeTable } from './report/table.js';
import type { Result } from './results.js';
import { STAGES, type Stage } from './stages.js';

const EXIT_USAGE = 2;

/** Prints figures to stdout; `say` prints progress to stderr. */
const print = (text: string): boolean => process.stdout.write(`${text}\n`);
const say = (line: string): boolean => process.stderr.write(`${line}\n`);

function planOrExit(): Plan {
  try {
    const plan = readPlan(process.argv.slice(2));
    if (plan !== 'help') return plan;
    print(USAGE);
    process.exit(0);
  } catch (error) {
    say(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    process.exit(EXIT_USAGE);
  }
}

async function runStage({ names, run }: Stage, plan: Plan): Promise<Result[]> {
  const wanted = names.filter((name) => plan.workloads.includes(name));
  if (wanted.length === 0) return [];
  const since = performance.now();
  say(wanted.join(', '));
  const crew = new Crew(say);
  try {
    return await run({ plan, crew, compared, say }, wanted);
  } finally {
    await crew.stop();
    say(`  took ${((performance.now() - since) / 1000).toFixed(0)} s`);
  }
}

function report(results: readonly Result[]): void {
  const goals = judge(results);
  writeFileSync(plan.json, `${JSON.stringify({ machine, plan, results, goals }, null, 2)}\n`);
  print(writeMachine(machine));
  const summary = writeSummary(results);
  if (summary !== '') print(summary);
  for (const result of results) print(writeTable(result));
  for (const goal of goals) print(writeVerdict(goal));
}

const begunAt = performance.now();
const plan = planOrExit();
const compared = plan.compare === undefined ? undefined : buildCommit(plan.compare);
pinThisProcess();
const machine = describeMachine();
const results: Result[] = [];
try {
  for (const stage of STAGES) results.push(...(await runStage(stage, plan)));
} finally {
  // Reports the results so far even if a workload failed.
  report(results);
}
print(plan.quick ? `The quick form shows that it works, not how fast.` : `All figures are in ${plan.json}.`);
say(`It took ${((performance.now() - begunAt) / 60_000).toFixed(1)} minutes.`);
