// `npm run chaos -- 300 --seed 6`: runs the chaos test for the given number of seconds.
import { parseArgs } from 'node:util';
import { startVitest } from 'vitest/node';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '300' },
    seed: { type: 'string' },
    verbose: { type: 'boolean' },
  },
});
process.env['CHAOS_SECONDS'] = positionals[0] ?? values.seconds;
process.env['CHAOS_SEED'] = values.seed ?? String(Math.floor(Math.random() * 1e6));
if (values.verbose) process.env['CHAOS_VERBOSE'] = 'yes';

await startVitest('test', ['test/chaos/chaos.test.ts'], { config: 'test/vitest.config.ts', watch: false });
