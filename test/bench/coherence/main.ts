// Measures the cost of coherence by number of instances: messages, bytes and Redis CPU time per write and per
// idle second.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { describeMachine } from '../machine.js';
import { startRedis } from '../peers/redis.js';
import type { Order, Reply } from './links.js';

const { values } = parseArgs({
  options: {
    instances: { type: 'string', default: '1,2,8,32,100,300,1000' },
    writes: { type: 'string', default: '300' },
    idleSeconds: { type: 'string', default: '10' },
  },
});

/** Maximum processes; with more instances, several share one. */
const MAX_PROCESSES = 32;
const PROCESSES_OF_MANY = 4;

class Child {
  readonly #process: ChildProcess = fork(fileURLToPath(new URL('links.js', import.meta.url)));

  async ask(order: Order): Promise<Reply> {
    this.#process.send(order);
    const [reply] = (await once(this.#process, 'message')) as [Reply];
    return reply;
  }

  async stop(): Promise<void> {
    this.#process.send({ kind: 'stop' } satisfies Order);
    await once(this.#process, 'exit');
  }
}

interface Use {
  commands: number;
  scripts: number;
  publishes: number;
  outBytes: number;
  cpuMs: number;
  received: number;
}

async function useOf(redis: Redis, children: Child[]): Promise<Use> {
  const info = await redis.info('all');
  const numberOf = (name: string): number =>
    Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1] ?? 0);
  const callsOf = (command: string): number =>
    Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  const replies = await Promise.all(children.map((child) => child.ask({ kind: 'received' })));
  return {
    commands: numberOf('total_commands_processed'),
    scripts: callsOf('evalsha') + callsOf('eval'),
    publishes: callsOf('publish'),
    outBytes: numberOf('total_net_output_bytes'),
    cpuMs: 1000 * (numberOf('used_cpu_sys') + numberOf('used_cpu_user')),
    received: replies.reduce((sum, reply) => sum + (reply.kind === 'received' ? reply.count : 0), 0),
  };
}

const perUnit = (before: Use, after: Use, units: number): Use => {
  const names = Object.keys(before) as (keyof Use)[];
  return Object.fromEntries(
    names.map((name) => [name, (after[name] - before[name]) / units]),
  ) as unknown as Use;
};

const quantile = (sorted: number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;

const round = (value: number): string =>
  value >= 100 ? value.toFixed(0) : value.toFixed(value >= 1 ? 1 : 2);

async function measure(instances: number): Promise<void> {
  const server = await startRedis();
  const redis = new Redis(server.url);
  const count = instances <= MAX_PROCESSES ? instances : PROCESSES_OF_MANY;
  const children = Array.from({ length: count }, () => new Child());
  try {
    await Promise.all(
      children.map((child, at) => {
        const links = Math.floor(instances / count) + (at < instances % count ? 1 : 0);
        return child.ask({ kind: 'start', url: server.url, links });
      }),
    );
    // Waits until the membership has settled.
    await new Promise((resolve) => setTimeout(resolve, 3000));
    const seconds = Number(values.idleSeconds);
    const beforeIdle = await useOf(redis, children);
    await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
    const idle = perUnit(beforeIdle, await useOf(redis, children), seconds);
    const writes = instances > 128 ? 10 : Number(values.writes);
    const writer = children[0]!;
    const before = await useOf(redis, children);
    const startedAt = performance.now();
    const reply = await writer.ask({ kind: 'write', count: writes, atOnce: 1 });
    const tookSeconds = (performance.now() - startedAt) / 1000;
    const after = await useOf(redis, children);
    const ms = (reply.kind === 'written' ? reply.ms : []).sort((one, other) => one - other);
    const idleShare = Object.fromEntries(
      Object.entries(idle).map(([name, value]) => [name, value * tookSeconds]),
    ) as unknown as Use;
    const all = perUnit(before, after, 1);
    const use = Object.fromEntries(
      Object.entries(all).map(([name, value]) => [name, (value - idleShare[name as keyof Use]) / writes]),
    ) as unknown as Use;
    const manyAt = performance.now();
    const many = await writer.ask({ kind: 'write', count: Math.min(writes, 500), atOnce: 16 });
    const perSecond = (many.kind === 'written' ? many.ms.length : 0) / ((performance.now() - manyAt) / 1000);
    const cells = [
      instances,
      `${round(quantile(ms, 0.5))} / ${round(quantile(ms, 0.99))}`,
      round(use.scripts),
      round(use.publishes),
      round(use.received),
      round(use.outBytes / 1000),
      round(use.cpuMs),
      round(idle.commands),
      round(idle.outBytes / 1000),
      round(idle.cpuMs),
      round(perSecond),
    ];
    process.stdout.write(`| ${cells.join(' | ')} |\n`);
  } finally {
    await Promise.all(children.map((child) => child.stop()));
    redis.disconnect();
    await server.stop();
  }
}

const HEAD = [
  'instances',
  'write, median / 99th (ms)',
  'scripts a write',
  'PUBLISH a write',
  'messages applied a write',
  'KB out a write',
  'Redis CPU ms a write',
  'commands an idle second',
  'KB out an idle second',
  'Redis CPU ms an idle second',
  '16 at once: writes/s',
];
process.stdout.write(`${JSON.stringify(describeMachine())}\n`);
process.stdout.write(`| ${HEAD.join(' | ')} |\n| ${HEAD.map(() => '---').join(' | ')} |\n`);
for (const instances of values.instances.split(',')) await measure(Number(instances));
