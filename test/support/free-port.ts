// A port on which nothing listens, for programs that cannot choose one themselves.
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ports that the kernel assigns to connections and to listeners on port 0, which could take one meanwhile. */
const PORTS = { from: 15_000, to: 32_000 };

/** Random, because other processes look for free ports too. */
const randomPort = (): number => PORTS.from + Math.floor(Math.random() * (PORTS.to - PORTS.from));

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const bound = Promise.race([
    once(server, 'listening').then(() => true),
    once(server, 'error').then(() => false),
  ]);
  server.listen(port, '127.0.0.1');
  if (!(await bound)) return false;
  server.close();
  await once(server, 'close');
  return true;
}

const given = new Set<number>();

/** A free port, never the same one twice in a process. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomPort();
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) return port;
  }
}
