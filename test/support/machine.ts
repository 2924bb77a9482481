// The workers of one machine and their primary, without processes: messages are copied as between processes.
import { type Cache, createCache } from '../../src/cache/cache.js';
import { LEASE_MS } from '../../src/cache/coherence/lease.js';
import { Hub } from '../../src/cache/coherence/hub.js';
import type { PeerMessage, WorkerMessage } from '../../src/process/cluster/messages.js';
import { type PeerHandlers, PeerLink } from '../../src/process/cluster/peer-link.js';
import { Relay } from '../../src/process/cluster/relay.js';
import { WorkerLeases } from '../../src/process/cluster/coherence-hub.js';
import { bounds } from './instances.js';
import { type ManualClock, createManualClock } from './manual-clock.js';

export const FENCE_LIFE_MS = 1000;

export interface MachineWorker extends Cache {
  link: PeerLink;
  /** The primary sends it messages from now on. */
  join: () => void;
  /** It reads nothing of what it is sent until it goes on. */
  freeze: () => void;
  goOn: () => void;
}

export interface Machine {
  clock: ManualClock;
  start: () => MachineWorker;
  /** Every worker requests its lease. */
  renew: () => void;
  relay: Relay;
}

export function createMachine(): Machine {
  const clock = createManualClock();
  const leases = new WorkerLeases(clock);
  const relay = new Relay(leases.isExpired);
  const hub = new Hub({ now: clock.now, deliver: (message, from) => relay.deliver(message, from) });
  const workers: MachineWorker[] = [];

  function receive(id: number, message: WorkerMessage, send: (message: PeerMessage) => void): void {
    if (message.kind === 'renew-lease') {
      if (!relay.has(id)) return;
      leases.renew(id);
      send({ kind: 'lease', requestedAt: message.requestedAt, instanceLeaseMs: LEASE_MS });
    } else if (message.kind === 'publish') {
      void hub.publish(message.change, id).then(() => {
        send({ kind: 'delivered', id: message.id });
      });
    } else relay.receive(id, message);
  }

  function start(): MachineWorker {
    const id = workers.length + 1;
    let held: PeerMessage[] | undefined;
    const obey = (message: PeerMessage): void => {
      link.receive(message, handlers);
    };
    const toWorker = (message: PeerMessage): void => {
      const copy = structuredClone(message);
      if (held) held.push(copy);
      else obey(copy);
    };
    const link = new PeerLink({
      self: id,
      loadTimeoutMs: 1000,
      clock,
      lostMaxAgeMs: 0,
      send: (message) => {
        receive(id, structuredClone(message), toWorker);
      },
    });
    const cache = createWorkerCache(link, clock);
    const handlers = {
      apply: cache.apply,
      clearCache: cache.clear,
    } as unknown as PeerHandlers;
    const worker: MachineWorker = {
      ...cache,
      link,
      join() {
        relay.join({ id, send: toWorker });
      },
      freeze() {
        held ??= [];
      },
      goOn() {
        const late = held ?? [];
        held = undefined;
        late.forEach(obey);
      },
    };
    workers.push(worker);
    return worker;
  }
  const renew = (): void => {
    for (const { link } of workers) link.renew();
  };
  return { clock, start, renew, relay };
}

function createWorkerCache(worker: PeerLink, { now }: ManualClock): Cache {
  const nothing = (): void => undefined;
  return createCache({
    bounds,
    fenceLifeMs: FENCE_LIFE_MS,
    now,
    worker,
    onInvalidated: nothing,
    onBanned: nothing,
    onEvict: nothing,
    onRedisState: nothing,
  });
}
