// The processes of an instance with workers: a primary with the link to Redis, and workers that answer requests. They send
// each other messages over channels that keep their order.
import type { RedisOptions } from '../../src/cache/instance.js';
import { CoherenceHub } from '../../src/process/cluster/coherence-hub.js';
import type { PeerMessage, WorkerMessage } from '../../src/process/cluster/messages.js';
import { type PeerHandlers, PeerLink } from '../../src/process/cluster/peer-link.js';
import { Line, type Network } from './network.js';
import { Pipe } from './pipe.js';
import type { Process } from './process.js';
import { Server } from './server.js';
import { READ_TIMEOUT_MS, type Upstream } from './upstream.js';

export interface CrewDeps {
  primary: Process;
  workers: readonly Process[];
  network: Network;
  upstream: Upstream;
  redisFor: (process: Process) => RedisOptions;
}

/** As workers/worker.ts has them. */
const WORKER_LEASE_RENEWAL_MS = 400;
const ASK_SPARE_MS = 500;
/** From the end of a worker until its place is taken, and from its start until it listens. */
const REPLACE_MS = 200;
const START_MS = 50;

export class Crew {
  readonly #deps: CrewDeps;
  readonly #hub: CoherenceHub;
  readonly #servers = new Map<Process, Server>();
  #last = 0;

  constructor(deps: CrewDeps) {
    this.#deps = deps;
    this.#hub = new CoherenceHub(deps.redisFor(deps.primary), deps.primary.clock);
    for (const process of deps.workers) this.#begin(process);
  }

  get servers(): Server[] {
    return [...this.#servers.values()].filter(({ process }) => process.isAlive);
  }

  #begin(process: Process): void {
    const { primary, upstream, redisFor } = this.#deps;
    const id = ++this.#last;
    process.start();
    const down = this.#channel<PeerMessage>(process, (message) => {
      link.receive(message, handlers);
    });
    const relayed = {
      id,
      send: (message: PeerMessage) => {
        down.send(structuredClone(message));
      },
    };
    const up = this.#channel<WorkerMessage>(primary, (message) => {
      if (message.kind === 'listening') void this.#hub.join(relayed);
      else this.#hub.receive(relayed, message);
    });
    const redis = redisFor(process);
    const link = new PeerLink({
      self: id,
      loadTimeoutMs: READ_TIMEOUT_MS + ASK_SPARE_MS,
      clock: process.clock,
      lostMaxAgeMs: redis.lostMaxAgeMs,
      send: (message) => {
        up.send(structuredClone(message));
      },
    });
    const server = new Server({ process, upstream, redis, worker: link });
    const handlers = handlersOf(server);
    process.clock.after(START_MS, () => {
      this.#servers.set(process, server);
      up.send({ kind: 'listening', addresses: { url: '' } });
    });
    renewAgain(process, link);
    process.onKill(() => {
      this.#servers.delete(process);
      primary.post(1, 'exit of a worker', () => {
        this.#hub.leave(id);
        primary.clock.after(REPLACE_MS, () => {
          this.#begin(process);
        });
      });
    });
  }

  #channel<T>(receiver: Process, deliver: (message: T) => void): Pipe<T> {
    const { network } = this.#deps;
    return new Pipe<T>({
      network,
      line: new Line(),
      receiver,
      label: 'reads from its channel',
      extraMs: () => 0,
      deliver,
    });
  }
}

function handlersOf({ cache, sharedUpstream }: Server): PeerHandlers {
  const nothing = (): void => undefined;
  return {
    clearCache: cache.clear,
    apply: cache.apply,
    applyCoordination: nothing,
    receivePacket: () => undefined,
    load: (key, read) => sharedUpstream.load(key, read),
  };
}

function renewAgain(process: Process, link: PeerLink): void {
  process.clock.after(WORKER_LEASE_RENEWAL_MS, () => {
    link.renew();
    renewAgain(process, link);
  });
}
