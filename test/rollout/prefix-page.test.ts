// The commands of the page “The page of a prefix”, run against the built program.
import '../support/real-sockets.js';
import { describe, expect } from 'vitest';
import { startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { exampleText } from '../support/examples.js';
import { itWithProgram } from '../support/programs.js';
import { walkThrough } from '../support/walk-through.js';

const demo = await startDemoServer();

describe('page “The page of a prefix”', () => {
  itWithProgram('curl', 'shows the actual output of each command', async () => {
    const env = { UPSTREAM_URL: demo.url, PREFIX_PAGES_PREFIXES: '21.T11998' };
    const { url } = await startBuiltProxy(env);
    expect(await walkThrough(exampleText('prefix-page.md'), { PROXY: url })).toBe(2);
  });
});
