// Starts demo servers for a test file and closes them after it.
import { afterAll } from 'vitest';
import { type DemoOptions, type DemoServer, createDemoServer } from '../../src/dev-server/server.js';

/** A listening demo server and its URL; closed at the end of the test file. */
export async function startDemoServer(options: DemoOptions = {}): Promise<DemoServer & { url: string }> {
  const server = createDemoServer(options);
  afterAll(() => server.close());
  const { url } = await server.listen(0);
  return Object.assign(server, { url });
}

/** The Authorization header for a handle user. */
export function basic(identity: string, password: string): string {
  return `Basic ${Buffer.from(`${encodeURIComponent(identity)}:${password}`).toString('base64')}`;
}
