// Uncaught exceptions: the process logs them and exits.
import { describe, expect, test } from 'vitest';
import { startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';

const demo = await startDemoServer();

/** Preloaded code that throws, or rejects a promise, on a signal. */
const PRELOADED = `
  process.on('SIGALRM', () => { throw new Error('thrown on purpose'); });
  process.on('SIGIO', () => { Promise.reject(new Error('rejected on purpose')); });
  process.on('SIGPROF', () => { Promise.reject(undefined); });
`;
const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(PRELOADED)}`;

describe('uncaught exception', () => {
  test.each([
    ['exception', 'SIGALRM', 'thrown on purpose'],
    ['rejection', 'SIGIO', 'rejected on purpose'],
    ['rejection without a reason', 'SIGPROF', 'thrown value: undefined'],
  ] as const)('is logged and ends the process with code 1 (%s)', async (_what, signal, message) => {
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url, NODE_OPTIONS });
    expect(await proxy.stop(signal)).toEqual({ code: 1, signal: null });
    const fatal = proxy.logs().find(({ level }) => level === 'fatal');
    expect(fatal).toMatchObject({ err: { message } });
  });
});
