// `resolve --native`: resolves over TCP and UDP through the native listeners of the built program.
import { describe, expect, test } from 'vitest';
import { startBuiltProxy } from '../support/built-proxy.js';
import { cli } from '../support/cli.js';
import { startDemoServer } from '../support/demo.js';
import { freePort } from '../support/free-port.js';

const demo = await startDemoServer();

/** Starts a proxy with both native listeners, and returns their address. */
async function startNative(): Promise<string> {
  const port = String(await freePort());
  await startBuiltProxy({ UPSTREAM_URL: demo.url, NATIVE_TCP_PORT: port, NATIVE_UDP_PORT: port });
  return `127.0.0.1:${port}`;
}

const resolve = (handle: string, address: string, ...options: string[]) =>
  cli(['resolve', handle, '--native', address, ...options]);

describe('resolve --native', () => {
  test.each(['tcp', 'udp'])('prints the record over %s', async (transport) => {
    const { code, stdout, stderr } = await resolve('21.T11998/demo', `${transport}://${await startNative()}`);
    expect([code, stderr]).toEqual([0, `response code 1 over ${transport.toUpperCase()}\n`]);
    const { responseCode, handle, values } = JSON.parse(stdout) as Record<string, unknown>;
    expect([responseCode, handle]).toEqual([1, '21.T11998/demo']);
    expect(values).toContainEqual(
      expect.objectContaining({ type: 'URL', data: { format: 'string', value: 'https://example.org/demo' } }),
    );
  });

  test('uses TCP by default, and prints a line per value with --plain', async () => {
    const { code, stdout } = await resolve('21.T11998/demo', await startNative(), '--plain');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\d+\tURL\t\d+\thttps:\/\/example\.org\/demo$/m);
  });

  test('exits with 1 for a missing handle', async () => {
    const { code, stderr } = await resolve('21.T11998/missing', `udp://${await startNative()}`);
    expect([code, stderr]).toEqual([1, expect.stringContaining('response code 100 over UDP')]);
  });

  test.each(['tcp', 'udp'])('exits with 1 when the %s port is closed', async (transport) => {
    const closed = await freePort();
    const { code, stderr } = await resolve('21.T11998/demo', `${transport}://127.0.0.1:${closed}`);
    expect([code, stderr]).toEqual([1, expect.stringContaining('no response from')]);
  });

  test.each(['http://127.0.0.1:8000', 'tcp://', '127.0.0.1/x'])('rejects the address %s', async (address) => {
    const { code, stderr } = await resolve('21.T11998/demo', address);
    expect([code, stderr]).toEqual([2, expect.stringContaining('Give a host')]);
  });
});
