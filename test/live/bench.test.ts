// The short benchmark: every server responds correctly, and the results are written to a file.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readPlan } from '../bench/plan.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const run = (file: string, args: string[]): Promise<{ stdout: string; stderr: string }> =>
  promisify(execFile)(process.execPath, [join(ROOT, file), ...args], { cwd: ROOT });

interface Written {
  machine: { node: string };
  results: { workload: string; rows: { peer: string; median: Record<string, number> }[] }[];
}

async function runBench(...options: string[]): Promise<{ stdout: string; written: Written }> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-test-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const json = join(folder, 'bench.json');
  await run('node_modules/typescript/bin/tsc', ['--noCheck', '--project', 'test/bench/tsconfig.json']);
  const { stdout } = await run('dist-bench/test/bench/main.js', [...options, '--json', json]);
  return { stdout, written: JSON.parse(readFileSync(json, 'utf8')) as Written };
}

describe('benchmark', () => {
  // The test compiles the benchmark, starts its servers and loads some of them for a second each.
  test(
    'drives every server, accepts only correct responses, and counts one load for a herd',
    { timeout: 360_000 },
    async () => {
      const { stdout, written } = await runBench('--quick', '--workloads', 'hot,herd');
      expect(written.machine.node).toBe(process.version);
      const [hot, herd] = written.results.map(({ rows }) => rows);
      expect(hot?.map(({ peer }) => peer)).toEqual(
        expect.arrayContaining(['this proxy', 'bare node:http', 'without prepared responses']),
      );
      for (const { peer, median } of [...(hot ?? []), ...(herd ?? [])]) {
        expect({ peer, wrong: median['wrong'] }).toEqual({ peer, wrong: 0 });
        expect(stdout).toContain(`| ${peer} `);
      }
      const ours = herd?.filter(({ peer }) => peer === 'this proxy');
      expect(ours?.map(({ median }) => median['upstreamRequests'])).toEqual([1]);
    },
  );

  test('rejects an unknown workload and lists the known ones', () => {
    expect(() => readPlan(['--workloads', 'hot,hit'])).toThrow(
      /there is no hit; known are hot, revalidate, zipf/,
    );
  });

  test('rejects a number of rounds above the limit', () => {
    expect(() => readPlan(['--rounds', '1000000'])).toThrow('--rounds has to be a whole number from 1 to 50');
  });
});
