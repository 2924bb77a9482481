// Finds free ports for programs that cannot choose one themselves.
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Excludes the kernel's ephemeral ports, which connections and listeners on port 0 could take meanwhile. */
const PORTS = { from: 15_000, to: 31_000 };
/** Concurrent test processes use separate ranges, because a returned port is often bound much later. */
const RANGES = 8;
const RANGE_SIZE = (PORTS.to - PORTS.from) / RANGES;
const range = Number(process.env['VITEST_POOL_ID'] ?? 0) % RANGES;

/** Starts at a random port, because an earlier process may still use some ports of the range. */
let next = Math.floor(Math.random() * RANGE_SIZE);

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  // `once` rejects when the server emits `error`, as it does for a port in use.
  const bound = once(server, 'listening').then(
    () => true,
    () => false,
  );
  server.listen(port, '127.0.0.1');
  if (!(await bound)) return false;
  server.close();
  await once(server, 'close');
  return true;
}

/** Returns a free port in the range. Ports are returned in rotation, so none is reused early. */
export async function freePort(): Promise<number> {
  for (;;) {
    next = (next + 1) % RANGE_SIZE;
    const port = PORTS.from + range * RANGE_SIZE + next;
    if (await isFree(port)) return port;
  }
}
