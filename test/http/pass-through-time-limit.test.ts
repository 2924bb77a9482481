// The time limit of what is passed on ends with its answer.
import { expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { PATH, mockUpstream } from '../support/upstream.js';

useNock();

const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

test('nothing is left to wait for once a passed-on request is answered', async () => {
  mockUpstream();
  const proxy = await startProxy();
  const before = timers();
  for (let count = 0; count < 30; count++) {
    expect((await proxy.ask(PATH, { headers: { Authorization: 'Basic eDp5' } })).status).toBe(200);
  }
  await expect.poll(() => timers() - before).toBeLessThan(15);
});
