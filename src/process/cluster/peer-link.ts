// The worker's side: publishes changes by way of the primary, asks and answers for the upstream.
import type { Clock } from '../../cache/clock.js';
import { LEASE_MS, Lease } from '../../cache/coherence/lease.js';
import type { Change, Message } from '../../cache/coherence/message.js';
import type { TakeTurn } from '../../coordination/key-lock.js';
import { hashOf } from '../../cache/coherence/groups.js';
import { ServiceError } from '../../errors.js';
import type { Config } from '../../config/schema.js';
import type { Outcome } from '../../handle/outcome.js';
import type { Peers } from '../../compose/parts.js';
import type { Down, PeerAnswer, PeerFailure, Up } from './messages.js';
import { packFailure, unpackFailure } from './upstream-failure.js';
import { Pending } from './pending-requests.js';

/** Longer than the primary waits for anybody. */
const PUBLISH_TIMEOUT_MS = 30_000;

/** What the primary's messages lead to. */
export interface PeerHandlers {
  /** From now on every message is received; what was kept before may have missed one. */
  joined: () => void;
  apply: (message: Message) => void;
  applyMintedName: (line: string) => void;
  /** Asks the upstream, once for all workers who wait for the same key. */
  load: (key: string, handle: string) => Promise<Outcome>;
  /** Does what the operator wants of this worker. */
  call: (message: Extract<Down, { kind: 'call' }>) => void;
  reload: (config: Config) => void;
  stop: () => void;
}

/** `askTimeoutMs`: a load of the other worker takes `upstream.timeout` at most. */
export interface PeerLinkOptions {
  self: number;
  askTimeoutMs: number;
  send: (message: Up) => void;
  clock: Pick<Clock, 'now' | 'monotonic' | 'after'>;
  /** How old an answer may be while the messages of other instances are not received (ms). */
  lostMaxAgeMs: number;
}

export class PeerLink implements Peers {
  readonly #options: PeerLinkOptions;
  readonly #told: Pending<{ failure?: PeerFailure | undefined }>;
  /** On the messages of the other workers, and on those of the other instances. */
  readonly #lease: Lease;
  readonly #link: Lease;
  #onState: () => void = () => undefined;
  readonly #asked: Pending<PeerAnswer>;
  readonly #turns: Pending<{ freeMs: number }>;
  #members: number[];
  #hasJoined = false;
  #hasLeft = false;

  constructor(options: PeerLinkOptions) {
    this.#options = options;
    this.#told = new Pending(options.clock);
    this.#asked = new Pending(options.clock);
    this.#turns = new Pending(options.clock);
    this.#members = [options.self];
    this.#lease = new Lease(options.clock);
    this.#link = new Lease(options.clock);
  }

  readonly isLinked = (): boolean => this.#link.leftMs() > 0;

  /** Another worker may have changed anything while the lease on its messages is over. */
  readonly trustedSince = (): number => {
    if (this.#lease.leftMs() === 0) return Infinity;
    return this.isLinked() ? 0 : this.#options.clock.now() - this.#options.lostMaxAgeMs;
  };

  readonly onState = (listener: () => void): void => {
    this.#onState = listener;
  };

  /** @throws ServiceError as the hub does */
  readonly publish = async (change: Change): Promise<void> => {
    const done = await this.#told.ask(PUBLISH_TIMEOUT_MS, (id) => {
      this.#options.send({ kind: 'publish', id, change });
    });
    if (done === undefined) throw new ServiceError('NOT_CONFIRMED', { retryAfterMs: 1000 });
    if (done.failure) throw unpackFailure(done.failure);
  };

  readonly tell = async (line: string): Promise<void> => {
    await this.#told.ask(PUBLISH_TIMEOUT_MS, (id) => {
      this.#options.send({ kind: 'tell', id, line });
    });
  };

  /** Asks the primary to renew the lease. */
  renew(): void {
    this.#options.send({ kind: 'renew', asked: this.#lease.moment() });
  }

  /**
   * The same worker answers for a key as long as the workers stay the same.
   *
   * @throws ServiceError when the upstream failed that worker: asked again, it would keep the reader waiting twice
   */
  readonly ask = async (key: string, handle: string): Promise<Outcome | undefined> => {
    const { self, askTimeoutMs, send } = this.#options;
    const owner = this.#members[hashOf(key) % this.#members.length] ?? self;
    if (owner === self) return undefined;
    const answer = await this.#asked.ask(askTimeoutMs, (id) => {
      send({ kind: 'ask', id, owner, key, handle });
    });
    if (answer?.failure) throw unpackFailure(answer.failure);
    return answer?.outcome as Outcome | undefined;
  };

  readonly takeTurn: TakeTurn = async (key, { waitMs, holder }) => {
    const { send } = this.#options;
    let turn = 0;
    const granted = await this.#turns.ask(waitMs, (id) => {
      turn = id;
      send({ kind: 'turn', id, key, holder });
    });
    const end = (): void => {
      send({ kind: 'turn-over', id: turn, key });
    };
    if (granted) return { freeSince: performance.now() - granted.freeMs, end };
    end();
    return undefined;
  };

  readonly leave = (): void => {
    this.#hasLeft = true;
  };

  obey(message: Down, handlers: PeerHandlers): void {
    const { send } = this.#options;
    switch (message.kind) {
      case 'apply':
        handlers.apply(message.message);
        send({ kind: 'applied', id: message.id });
        break;
      case 'told':
        handlers.applyMintedName(message.line);
        send({ kind: 'applied', id: message.id });
        break;
      case 'lease':
        this.#lease.renew(message.asked);
        this.#link.renew(message.asked, Math.min(message.linkedMs, LEASE_MS));
        this.#onState();
        break;
      case 'asked':
        void loadFor(message, handlers.load).then((answer) => {
          this.#answer(message, this.#hasLeft ? {} : answer);
        });
        break;
      case 'call':
        handlers.call(message);
        break;
      case 'config':
        handlers.reload(message.config);
        break;
      case 'stop':
        handlers.stop();
        break;
      case 'members':
        this.#members = message.ids;
        if (this.#hasJoined) break;
        this.#hasJoined = true;
        handlers.joined();
        this.renew();
        break;
      default:
        this.#settle(message);
    }
  }

  /** What cannot be sent is not answered: the worker asks by itself. */
  #answer({ id, from }: { id: number; from: number }, answer: PeerAnswer): void {
    try {
      this.#options.send({ kind: 'answer', id, from, answer });
    } catch {
      this.#options.send({ kind: 'answer', id, from, answer: {} });
    }
  }

  #settle(message: Extract<Down, { kind: 'done' | 'your-turn' | 'no-turn' | 'answered' }>): void {
    switch (message.kind) {
      case 'done':
        this.#told.settle(message.id, message);
        break;
      case 'your-turn':
        this.#turns.settle(message.id, message);
        break;
      case 'no-turn':
        this.#turns.settle(message.id, undefined);
        break;
      case 'answered':
        this.#asked.settle(message.id, message.answer);
    }
  }
}

/** Of a failure that is not the upstream's nothing is said: the worker asks by itself. */
async function loadFor(
  { key, handle }: { key: string; handle: string },
  load: PeerHandlers['load'],
): Promise<PeerAnswer> {
  try {
    return { outcome: await load(key, handle) };
  } catch (error) {
    return error instanceof ServiceError ? { failure: packFailure(error) } : {};
  }
}
