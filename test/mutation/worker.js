// Tries the mutations of an area, from a given one on, in one instance of vitest; prints a line of JSON for each.
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { createVitest } from 'vitest/node';
import { AREAS } from './areas.js';
import { mutate, mutationsOf } from './operators.js';

const [area, seed, sample, from] = process.argv.slice(2);
const { sources, tests } = AREAS[area];
const print = (verdict) => process.stdout.write(`${JSON.stringify(verdict)}\n`);

const files = sources.flatMap((path) =>
  path.endsWith('/')
    ? readdirSync(path).flatMap((name) => (name.endsWith('.ts') ? [path + name] : []))
    : [path],
);
const all = files.flatMap((path) => mutationsOf(path, readFileSync(path, 'utf8')));
const rank = ({ path, start, replacement }) =>
  createHash('sha256').update(`${seed} ${path} ${start} ${replacement}`).digest('hex');
const drawn = new Set([...all].sort((a, b) => (rank(a) < rank(b) ? -1 : 1)).slice(0, Number(sample)));
const mutations = all.filter((each) => drawn.has(each));
print({ total: mutations.length });

/** The mutation that the tests meet; undefined for the code as it is. */
let current;
const plugin = {
  name: 'mutation',
  enforce: 'pre',
  transform: (code, id) =>
    current !== undefined && id === resolve(current.path)
      ? mutate(readFileSync(id, 'utf8'), current)
      : undefined,
};

const vitest = await createVitest(
  'test',
  { config: 'test/mutation/vitest.config.ts', watch: false, reporters: [{}], bail: 1 },
  { plugins: [plugin] },
);
const specifications = await vitest.globTestSpecifications(tests);

/** Whether all tests of the area pass. */
async function areAllGreen() {
  vitest.state.filesMap.clear();
  for (const path of files) vitest.invalidateFile(resolve(path));
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
  return unhandledErrors.length === 0 && testModules.every((each) => each.ok() || each.state() === 'skipped');
}

if (from === '0' && !(await areAllGreen())) throw new Error('the tests fail without a mutation');
for (const mutation of mutations.slice(Number(from))) {
  current = mutation;
  print({ total: mutations.length, mutation, isSurvivor: await areAllGreen() });
}
await vitest.close();
