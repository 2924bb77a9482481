// Runs several instances on one Redis as links and hubs, without proxies. The parent process drives
// this program over IPC.
import { type Instance, createInstance } from '../../../src/cache/cache.js';

export type Order =
  | { kind: 'start'; url: string; links: number }
  | { kind: 'write'; count: number; atOnce: number }
  | { kind: 'received' }
  | { kind: 'stop' };
export type Reply =
  | { kind: 'started' }
  | { kind: 'written'; ms: number[] }
  | { kind: 'received'; count: number };

const instances: Instance[] = [];
let received = 0;
let keys = 0;

async function start(url: string, links: number): Promise<void> {
  for (let link = 0; link < links; link++) {
    const instance = createInstance({
      redis: {
        url,
        keyPrefix: 'bench:',
        commandTimeoutMs: 1000,
        disconnectedMaxAgeMs: 1000,
        disconnectedWrites: 'wait',
      },
      now: Date.now,
      deliver: () => {
        received++;
        return undefined;
      },
      onState: () => undefined,
    });
    instances.push(instance);
    while (!instance.hub.isLinked()) await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Performs a write without the upstream: first the fence, then the invalidation. */
async function write(): Promise<number> {
  const { hub } = instances[0]!;
  const key = `${process.pid}/${++keys}`;
  const startedAt = performance.now();
  await hub.publish({ kind: 'raise', key, fence: String(keys), lifeMs: 45_000 });
  await hub.publish({ kind: 'changed', key, fence: String(keys) });
  return performance.now() - startedAt;
}

async function writeAll(count: number, atOnce: number): Promise<number[]> {
  const ms: number[] = [];
  let begun = 0;
  const writeOn = async (): Promise<void> => {
    while (begun++ < count) ms.push(await write());
  };
  await Promise.all(Array.from({ length: atOnce }, writeOn));
  return ms;
}

async function obey(order: Order): Promise<Reply | undefined> {
  switch (order.kind) {
    case 'start':
      await start(order.url, order.links);
      return { kind: 'started' };
    case 'write':
      return { kind: 'written', ms: await writeAll(order.count, order.atOnce) };
    case 'received':
      return { kind: 'received', count: received };
    case 'stop':
      await Promise.all(instances.map((instance) => instance.close()));
      process.exit();
  }
}

process.on('message', (order: Order) => {
  void obey(order).then((reply) => reply && process.send?.(reply));
});
process.on('disconnect', () => process.exit());
