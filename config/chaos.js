// `npm run chaos -- --seconds 300 --seed 6`: the same run as in the tests, for as long as is wanted.
import { parseArgs } from 'node:util';
import { startVitest } from 'vitest/node';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '300' },
    seed: { type: 'string' },
    verbose: { type: 'boolean' },
  },
});
process.env['CHAOS_SECONDS'] = values.seconds;
process.env['CHAOS_SEED'] = values.seed ?? String(Math.floor(Math.random() * 1e6));
if (values.verbose) process.env['CHAOS_VERBOSE'] = 'yes';

await startVitest('test', ['test/chaos/chaos.test.ts'], { config: 'test/vitest.config.ts', watch: false });
