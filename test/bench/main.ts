// `npm run bench`: drives the proxy and its peers in turn, prints tables and writes the figures as JSON.
import { writeFileSync } from 'node:fs';
import { pinThisProcess } from './cores.js';
import { describeMachine } from './machine.js';
import { buildCommit } from './peers/build.js';
import { Crew } from './peers/crew.js';
import { type Plan, USAGE, type WorkloadName, readPlan } from './plan.js';
import { judge, writeVerdict } from './report/goals.js';
import { writeMachine, writeTable } from './report/table.js';
import type { Result } from './results.js';
import { herd } from './workloads/herd.js';
import { memory } from './workloads/memory.js';
import { miss } from './workloads/miss.js';
import { mixed, servers } from './workloads/mixed.js';
import { native } from './workloads/native.js';
import { revalidate } from './workloads/revalidate.js';
import { hot, redirect, zipf } from './workloads/throughput.js';
import { workers } from './workloads/workers.js';
import type { Workload } from './workloads/workload.js';
import { write } from './workloads/write.js';

const DOES: Record<WorkloadName, Workload> = {
  ...{ hot, revalidate, zipf, redirect, mixed, servers, herd, miss, write, native, workers, memory },
};

const EXIT_USAGE = 2;

/** Figures go to stdout, what happens meanwhile to stderr. */
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

async function runOne(workload: WorkloadName, plan: Plan): Promise<Result> {
  say(workload);
  const crew = new Crew(say);
  try {
    const result = { workload, ...(await DOES[workload]({ plan, crew, compared, say })) };
    print(writeTable(result));
    return result;
  } finally {
    await crew.stop();
  }
}

const plan = planOrExit();
const compared = plan.compare === undefined ? undefined : buildCommit(plan.compare);
pinThisProcess();
const machine = describeMachine();
print(writeMachine(machine));
const results: Result[] = [];
for (const workload of plan.workloads) results.push(await runOne(workload, plan));
const goals = judge(results);
writeFileSync(plan.json, `${JSON.stringify({ machine, plan, results, goals }, null, 2)}\n`);
for (const goal of goals) print(writeVerdict(goal));
print(plan.quick ? `The quick form shows that it works, not how fast.` : `All figures are in ${plan.json}.`);
