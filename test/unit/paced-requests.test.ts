import { describe, expect, test } from 'vitest';
import { sendPaced } from '../../src/cli/paced-requests.js';

describe('paced requests', () => {
  test('end after the last item, although most senders still wait for their turn', async () => {
    const items = ['21.T1/a'];
    const sent: string[] = [];
    const sending = sendPaced({
      concurrency: 1000,
      rate: 1,
      next: () => items.shift(),
      send(item) {
        sent.push(item);
        return Promise.resolve();
      },
    });
    // Without the shared end, the last sender would get its turn after 999 s.
    expect(await sending).toBe(false);
    expect(sent).toEqual(['21.T1/a']);
  });
});
