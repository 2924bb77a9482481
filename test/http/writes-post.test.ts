// POST of a handle only asks, on the servers we know; another may write, so it counts as a write.
import { expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { PATH, mockUpstream } from '../support/upstream.js';
import { jsonAnswer, mockWrites } from '../support/writes.js';

useNock();

test('its answer is not kept, and the record is asked for anew', async () => {
  const upstream = mockUpstream();
  const sent = mockWrites(jsonAnswer(200, { responseCode: 1, values: [] }));
  const proxy = await startProxy();
  await proxy.ask(PATH);
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
  for (const body of ['index=1', 'index=2']) await proxy.ask(PATH, { method: 'POST', headers, body });
  expect(sent.map(({ body }) => body)).toEqual(['index=1', 'index=2']);
  await proxy.ask(PATH);
  expect(upstream.asked).toBe(2);
});
