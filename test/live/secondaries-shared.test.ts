// What an instance reads from a secondary is for that instance alone: others may know of a write that it has not seen yet.
import '../support/real-sockets.js';
import { expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import { describeTwoProxies } from '../support/sharing-proxies.js';

const primary = await startDemoServer();
const secondary = await startDemoServer();

const NAME = '21.T11998/failover';
const PATH = `/api/handles/${NAME}`;

describeTwoProxies({ upstreamUrl: primary.url, env: { UPSTREAM_SECONDARIES: secondary.url } }, (two) => {
  test('an acknowledged write is not undone by a secondary that another instance reads', async () => {
    for (const server of [primary, secondary]) server.put(NAME, numbered(1));
    expect((await putNumbered(two.one.url, PATH, 2)).status).toBe(200);
    primary.fail('reset');
    expect((await two.one.ask(PATH)).status).toBe(502);
    // This instance knows of the write too, because it received it.
    expect((await two.other.ask(PATH)).status).toBe(502);
    two.other.pass(61_000);
    expect(numberIn(await two.other.ask(PATH))).toBe(1);
    expect((await two.one.ask(PATH)).status).toBe(502);
    primary.heal();
    two.one.pass(10_000);
    expect(numberIn(await two.one.ask(PATH))).toBe(2);
  });
});
