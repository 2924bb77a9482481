// `npm run chaos -- 300 --seed 6 --instances 3 --strict`: runs the chaos test for the given number of seconds. With
// `--strict`, instances without Redis refuse writes and serve nothing as fresh.
import { parseArgs } from 'node:util';
import { startVitest } from 'vitest/node';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '300' },
    seed: { type: 'string' },
    instances: { type: 'string', default: '2' },
    strict: { type: 'boolean' },
    verbose: { type: 'boolean' },
  },
});
process.env['CHAOS_SECONDS'] = positionals[0] ?? values.seconds;
process.env['CHAOS_SEED'] = values.seed ?? String(Math.floor(Math.random() * 1e6));
process.env['CHAOS_INSTANCES'] = values.instances;
if (values.strict) process.env['CHAOS_STRICT'] = 'yes';
if (values.verbose) process.env['CHAOS_VERBOSE'] = 'yes';

await startVitest('test', ['test/chaos/chaos.test.ts'], { config: 'test/vitest.config.ts', watch: false });
