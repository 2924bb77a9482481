// Runs the real app in this process with both listeners open, for commands.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { Proxy } from './proxy.js';
import { startSeparated } from './sharing-proxies.js';

export interface Operated extends Proxy {
  /** Variables that tell a command the proxy's addresses. */
  place: { PROXY_URL: string; ADMIN_URL: string };
}

/** Starts the app, which is a second faster than the built program; closes it when the test ends. */
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
