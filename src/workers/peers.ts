// The worker's side: tells the other workers what the cache forgets, asks and answers for the upstream.
import type { TakeTurn } from '../cache/lock.js';
import { ServiceError } from '../errors.js';
import type { Config } from '../config/schema.js';
import type { Outcome } from '../handle/outcome.js';
import type { Peers } from '../wiring/parts.js';
import type { Down, PeerAnswer, Up } from './messages.js';
import { packFailure, unpackFailure } from './failure.js';
import { Pending } from './pending.js';

/** A worker that has not obeyed by then is stuck; it answers nobody either. */
const TELL_TIMEOUT_MS = 1000;

/** What the primary's messages lead to. */
export interface PeerHandlers {
  /** From now on every line is heard; what was kept before may have missed one. */
  joined: () => void;
  hear: (line: string) => void;
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
}

export class PeerLink implements Peers {
  readonly #options: PeerLinkOptions;
  readonly #told = new Pending<true>();
  readonly #asked = new Pending<PeerAnswer>();
  readonly #turns = new Pending<{ freeMs: number }>();
  #members: number[];
  #hasJoined = false;
  #hasLeft = false;

  constructor(options: PeerLinkOptions) {
    this.#options = options;
    this.#members = [options.self];
  }

  readonly tell = async (line: string): Promise<void> => {
    await this.#told.ask(TELL_TIMEOUT_MS, (id) => {
      this.#options.send({ kind: 'tell', id, line });
    });
  };

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
      case 'told':
        handlers.hear(message.line);
        send({ kind: 'heard', id: message.id, from: message.from });
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
        if (!this.#hasJoined) handlers.joined();
        this.#hasJoined = true;
        this.#members = message.ids;
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
        this.#told.settle(message.id, true);
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

/** FNV-1a over UTF-16 units, 32 bits: spreads keys evenly, and is the same in every process. */
function hashOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}
