// The real app in this process with both of its listeners open, for commands that run as separate processes.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { Proxy } from './proxy.js';
import { startSeparated } from './sharing-proxies.js';

export interface Operated extends Proxy {
  /** The variables that give a command the address of the proxy. */
  place: { PROXY_URL: string; ADMIN_URL: string };
}

/** Starts immediately, where the built program takes a second; closed when the test ends. */
export async function startOperated(
  upstreamUrl: string,
  env: Record<string, string> = {},
): Promise<Operated> {
  const proxy = await startSeparated({ upstreamUrl, env });
  const admin = createServer(proxy.app.admin).listen(0, '127.0.0.1');
  await once(admin, 'listening');
  onTestFinished(() => {
    admin.closeAllConnections();
    admin.close();
  });
  const { port } = admin.address() as AddressInfo;
  return { ...proxy, place: { PROXY_URL: proxy.url, ADMIN_URL: `http://127.0.0.1:${port}` } };
}
