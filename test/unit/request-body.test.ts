import { once } from 'node:events';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { createMemoryBudget, createWithBody } from '../../src/http/request-body.js';

describe('request body', () => {
  test('is rejected, and uses no memory budget, when the client disconnected before the read', async () => {
    const budget = createMemoryBudget(1000);
    const withBody = createWithBody(budget, 100);
    const req = new IncomingMessage(new Socket());
    req.destroy();
    await once(req, 'close');
    const reading = withBody(req, () => Promise.resolve('read'));
    await expect(reading).rejects.toMatchObject({ code: 'BAD_REQUEST' });
    expect(budget.holders.size).toBe(0);
  });
});
