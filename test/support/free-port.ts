// Finds free ports for programs that cannot choose one themselves.
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Excludes the kernel's ephemeral ports, which connections and listeners on port 0 could take meanwhile. */
const PORTS = { from: 15_000, to: 32_000 };

/** Picks a random port, because other processes look for free ports too. */
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

/** Returns a free port, and never returns a port twice in a process. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomPort();
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) return port;
  }
}
