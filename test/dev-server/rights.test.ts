// Administrator permissions on the demo server: the HS_ADMIN value decides who may replace a record.
import { describe, expect, it } from 'vitest';
import { adminValue, textValue } from '../../src/dev-server/seed.js';
import { basic, startDemoServer } from '../support/demo.js';

const server = await startDemoServer();

async function statusOfReplacing(permissions: string): Promise<number> {
  server.put('21.T11998/guarded', [textValue(1, 'URL', 'https://example.org/old'), adminValue(permissions)]);
  const response = await fetch(`${server.url}/api/handles/21.T11998/guarded`, {
    method: 'PUT',
    headers: {
      authorization: basic('300:21.T11998/USER01', 'password'),
      'content-type': 'application/json',
    },
    body: JSON.stringify([textValue(1, 'URL', 'https://example.org/new'), adminValue(permissions)]),
  });
  return response.status;
}

describe('administrator permissions on the demo server', () => {
  it.each([
    ['for the difference itself', '000000010000', 200],
    ['to add administrators', '001000000000', 200],
    ['to delete and recreate the handle', '000000000010', 200],
    ['to add values only', '000001000000', 403],
  ])('%s (%s) cause a replacing PUT to return %s', async (_, permissions, status) => {
    expect(await statusOfReplacing(permissions)).toBe(status);
  });
});
