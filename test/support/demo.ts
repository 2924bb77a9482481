// Starts demo servers, and closes them at the end of the test file.
import { afterAll } from 'vitest';
import { adminValue, userRecord } from '../../src/dev-server/seed.js';
import { type ControlledOptions, type ControlledServer, createControlledServer } from './demo-control.js';

/** Starts a demo server and returns it with its URL; closes it at the end of the test file. */
export async function startDemoServer(
  options: ControlledOptions = {},
): Promise<ControlledServer & { url: string }> {
  const server = createControlledServer(options);
  afterAll(() => server.close());
  const { url } = await server.listen(0);
  return Object.assign(server, { url });
}

/** Returns the Authorization header for a handle user. */
export function basic(identity: string, password: string): string {
  return `Basic ${Buffer.from(`${encodeURIComponent(identity)}:${password}`).toString('base64')}`;
}

/** Returns the records of a prefix whose user `300:<prefix>/USER01`, with the password `password`, may list it. */
export const administered = (prefix: string) => ({
  [`0.NA/${prefix}`]: [
    adminValue('111111111111'),
    {
      index: 200,
      type: 'HS_VLIST',
      data: { format: 'vlist', value: [{ handle: `${prefix}/USER01`, index: 300 }] },
    },
  ],
  [`${prefix}/USER01`]: userRecord('password'),
});
