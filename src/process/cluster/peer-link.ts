// A worker's link to the primary: its lease, published changes, loads by the owner of a key, locks.
import type { Clock } from '../../cache/clock.js';
import { LEASE_MS, Lease } from '../../cache/coherence/lease.js';
import type { Change, Message } from '../../cache/coherence/message.js';
import type { AcquireLocal } from '../../coordination/key-lock.js';
import { hashOf } from '../../cache/coherence/groups.js';
import { ServiceError } from '../../errors.js';
import type { Outcome } from '../../handle/outcome.js';
import type { LoadRead } from '../../upstream/client.js';
import type { Peers } from '../../compose/shared-deps.js';
import { AnswerLimit } from '../../native/answer-limit.js';
import type { PassedPacket } from '../../native/udp.js';
import {
  type PeerAnswer,
  type PeerFailure,
  type PeerMessage,
  type WorkerMessage,
  packFailure,
  unpackFailure,
} from './messages.js';
import { PendingRequests } from './pending-requests.js';

/** Longer than any wait of the primary. */
const PUBLISH_TIMEOUT_MS = 30_000;

const MAX_PASSED_PER_SECOND = 1000;

/** The effects of the primary's messages. */
export interface PeerHandlers {
  /** Deletes all entries: those from before the first message may have missed a write. */
  clearCache: () => void;
  apply: (message: Message) => void;
  applyCoordination: (line: string) => void;
  /** Loads from the upstream, once for all workers that wait for the same key. */
  load: (key: string, read: LoadRead) => Promise<Outcome>;
  /** A packet of a request that this worker puts together. */
  receivePacket: (packet: PassedPacket) => void;
}

interface PeerLinkOptions {
  /** This worker's id. */
  self: number;
  /** How long a load by another worker may take (ms). */
  loadTimeoutMs: number;
  send: (message: WorkerMessage) => void;
  clock: Pick<Clock, 'now' | 'monotonic' | 'after'>;
  /** How old an answer may be while the messages of other instances are not received (ms). */
  lostMaxAgeMs: number;
}

export class PeerLink implements Peers {
  readonly #options: PeerLinkOptions;
  readonly #deliveries: PendingRequests<{ failure?: PeerFailure | undefined }>;
  readonly #loads: PendingRequests<PeerAnswer>;
  readonly #locks: PendingRequests<{ freeMs: number }>;
  /** On the messages of the other workers. */
  readonly #lease: Lease;
  /** On the messages of the other instances. */
  readonly #link: Lease;
  #onState: () => void = () => undefined;
  readonly #passed = new AnswerLimit(MAX_PASSED_PER_SECOND);
  #workers: number[];
  #hasJoined = false;
  #hasStoppedLoading = false;

  constructor(options: PeerLinkOptions) {
    this.#options = options;
    this.#deliveries = new PendingRequests(options.clock);
    this.#loads = new PendingRequests(options.clock);
    this.#locks = new PendingRequests(options.clock);
    this.#workers = [options.self];
    this.#lease = new Lease(options.clock);
    this.#link = new Lease(options.clock);
  }

  readonly isLinked = (): boolean => this.#link.leftMs() > 0;

  /** While the lease on the other workers' messages has expired, any entry may be outdated. */
  readonly trustedSince = (): number => {
    if (this.#lease.leftMs() === 0) return Infinity;
    return this.isLinked() ? 0 : this.#options.clock.now() - this.#options.lostMaxAgeMs;
  };

  readonly onState = (listener: () => void): void => {
    this.#onState = listener;
  };

  /** @throws ServiceError as the hub does */
  readonly publish = async (change: Change): Promise<void> => {
    const done = await this.#deliveries.request(PUBLISH_TIMEOUT_MS, (id) => {
      this.#options.send({ kind: 'publish', id, change });
    });
    if (done === undefined) throw new ServiceError('NOT_CONFIRMED', { retryAfterMs: 1000 });
    if (done.failure) throw unpackFailure(done.failure);
  };

  readonly broadcast = async (line: string): Promise<void> => {
    await this.#deliveries.request(PUBLISH_TIMEOUT_MS, (id) => {
      this.#options.send({ kind: 'coordination', id, line });
    });
  };

  /** Asks the primary to renew the lease. */
  renew(): void {
    this.#options.send({ kind: 'renew-lease', requestedAt: this.#lease.now() });
  }

  /**
   * One worker loads a key for all, the same as long as the workers stay the same.
   *
   * @returns undefined when this worker has to load by itself
   * @throws ServiceError when the upstream failed there: a second attempt would make the reader wait twice
   */
  readonly loadAtOwner = async (key: string, read: LoadRead): Promise<Outcome | undefined> => {
    const { self, loadTimeoutMs, send } = this.#options;
    const owner = this.#ownerOf(key);
    if (owner === self) return undefined;
    const answer = await this.#loads.request(loadTimeoutMs, (id) => {
      send({ kind: 'load', id, owner, key, ...read });
    });
    if (answer?.failure) throw unpackFailure(answer.failure);
    return answer?.outcome as Outcome | undefined;
  };

  readonly passPacket = (key: string, packet: PassedPacket): boolean => {
    const owner = this.#ownerOf(key);
    if (owner === this.#options.self) return false;
    // Clients send requests of several packets seldom: more than these are an attack on this channel.
    if (this.#passed.judge('', this.#options.clock.now()) === 'answer') {
      this.#options.send({ kind: 'packet', owner, packet });
      this.#passed.count('', 1);
    }
    return true;
  };

  #ownerOf(key: string): number {
    return this.#workers[hashOf(key) % this.#workers.length] ?? this.#options.self;
  }

  readonly acquireLocal: AcquireLocal = async (key, { waitMs, client }) => {
    const { send } = this.#options;
    let lockId = 0;
    const granted = await this.#locks.request(waitMs, (id) => {
      lockId = id;
      send({ kind: 'acquire-lock', id, key, client });
    });
    const release = (): void => {
      send({ kind: 'release-lock', id: lockId, key });
    };
    if (granted) return { freeSince: performance.now() - granted.freeMs, release };
    release();
    return undefined;
  };

  readonly isFirst = (): boolean => this.#workers[0] === this.#options.self;

  readonly stopLoading = (): void => {
    this.#hasStoppedLoading = true;
  };

  receive(message: PeerMessage, handlers: PeerHandlers): void {
    const { send } = this.#options;
    switch (message.kind) {
      case 'apply':
        handlers.apply(message.message);
        send({ kind: 'applied', id: message.id });
        break;
      case 'coordination':
        handlers.applyCoordination(message.line);
        send({ kind: 'applied', id: message.id });
        break;
      case 'lease':
        this.#lease.renew(message.requestedAt);
        this.#link.renew(message.requestedAt, Math.min(message.instanceLeaseMs, LEASE_MS));
        this.#onState();
        break;
      case 'load':
        void loadFor(message, handlers.load).then((answer) => {
          this.#sendLoaded(message, this.#hasStoppedLoading ? {} : answer);
        });
        break;
      case 'packet':
        handlers.receivePacket(message.packet);
        break;
      case 'workers':
        this.#workers = message.ids;
        if (this.#hasJoined) break;
        this.#hasJoined = true;
        handlers.clearCache();
        this.renew();
        break;
      default:
        this.#settle(message);
    }
  }

  /** An answer that cannot be serialised is left out: the other worker loads by itself. */
  #sendLoaded({ id, from }: { id: number; from: number }, answer: PeerAnswer): void {
    try {
      this.#options.send({ kind: 'loaded', id, from, answer });
    } catch {
      this.#options.send({ kind: 'loaded', id, from, answer: {} });
    }
  }

  #settle(
    message: Extract<PeerMessage, { kind: 'delivered' | 'lock-granted' | 'lock-refused' | 'loaded' }>,
  ): void {
    switch (message.kind) {
      case 'delivered':
        this.#deliveries.settle(message.id, message);
        break;
      case 'lock-granted':
        this.#locks.settle(message.id, message);
        break;
      case 'lock-refused':
        this.#locks.settle(message.id, undefined);
        break;
      case 'loaded':
        this.#loads.settle(message.id, message.answer);
    }
  }
}

/** After a failure of our own the other worker loads by itself. */
async function loadFor(
  { key, handle, caller }: LoadRead & { key: string },
  load: PeerHandlers['load'],
): Promise<PeerAnswer> {
  try {
    return { outcome: await load(key, { handle, caller }) };
  } catch (error) {
    return error instanceof ServiceError ? { failure: packFailure(error) } : {};
  }
}
