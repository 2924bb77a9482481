// Chooses the default ports for the demo, or free ports if a different program uses the default ports.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Returns the port, or 0, which selects any free port, if the port is in use. */
export async function portIfFree(protocol: 'tcp' | 'udp', host: string, port: number): Promise<string> {
  const probe =
    protocol === 'tcp'
      ? createServer().listen({ host, port, exclusive: true })
      : createSocket(host.includes(':') ? 'udp6' : 'udp4').bind({ address: host, port, exclusive: true });
  try {
    await once(probe, 'listening');
  } catch {
    return '0';
  }
  await once(probe.close(), 'close');
  return String(port);
}
