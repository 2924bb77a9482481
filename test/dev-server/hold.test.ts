// Held responses of the demo server: requests pause between their commit and their acknowledgement.
import { describe, expect, it } from 'vitest';
import { ask } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { numberIn, putNumbered } from '../support/demo-writes.js';

const server = await startDemoServer();
const PATH = '/api/handles/21.T11998/held';

describe('demo server that holds responses', () => {
  it('executes requests immediately, and sends their responses on release', async () => {
    server.hold.holdReplies('PUT');
    let isAnswered = false;
    const written = putNumbered(server.url, PATH, 1).then(({ status }) => {
      isAnswered = true;
      return status;
    });
    await expect.poll(() => server.hold.size).toBe(1);
    expect(numberIn(await ask(server.url, PATH)), 'other methods are answered, and see the record').toBe(1);
    expect(isAnswered).toBe(false);
    server.hold.sendHeld('PUT');
    expect(await written).toBe(201);
    expect(server.hold.size).toBe(0);
    expect((await putNumbered(server.url, PATH, 2)).status).toBe(200);
  });
});
