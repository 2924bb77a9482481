// What the primary process and its workers say to each other.
import type { Member } from '../../admin/operations.js';
import type { Moment } from '../../cache/coherence/lease.js';
import type { Change, Message } from '../../cache/coherence/message.js';
import type { Config } from '../../config/schema.js';
import type { ErrorCode, UpstreamAnswer } from '../../errors.js';

/** From a worker to the primary. */
export type Up =
  /** Begins, and waits for the configuration. */
  | { kind: 'beginning' }
  | { kind: 'listening'; url: string }
  /** Whether this worker should get requests; sent again and again. */
  | { kind: 'state'; isReady: boolean }
  /** Renew the lease; sent again and again. */
  | { kind: 'renew'; asked: Moment }
  /** Publish a change to every process that caches. */
  | { kind: 'publish'; id: number; change: Change }
  /** Tell all other workers this line. */
  | { kind: 'tell'; id: number; line: string }
  /** The message or line was applied. */
  | { kind: 'applied'; id: number }
  /** Let the worker `owner` ask the upstream. */
  | { kind: 'ask'; id: number; owner: number; key: string; handle: string }
  | { kind: 'answer'; id: number; from: number; answer: PeerAnswer }
  /** Wait for the turn to change what is under the key; `holder` is the caller who wants it. */
  | { kind: 'turn'; id: number; key: string; holder: string }
  /** End the turn, or wait no longer. */
  | { kind: 'turn-over'; id: number; key: string }
  /** What came of a call of the operator's. */
  | { kind: 'reply'; id: number; value?: unknown; failure?: string };

/** From the primary to a worker. */
export type Down =
  /** Of the whole machine: at the beginning, and after a reload. */
  | { kind: 'config'; config: Config }
  /** All workers there are, in order, the one that is told included. */
  | { kind: 'members'; ids: number[] }
  /** Every message from before `asked` has been sent. `linkedMs`: what is left of the lease of this instance. */
  | { kind: 'lease'; asked: Moment; linkedMs: number }
  | { kind: 'apply'; id: number; message: Message }
  | { kind: 'told'; id: number; line: string }
  | { kind: 'done'; id: number; failure?: PeerFailure }
  /** `freeMs`: for how long nobody else had it. */
  | { kind: 'your-turn'; id: number; freeMs: number }
  /** The queue is full. */
  | { kind: 'no-turn'; id: number }
  | { kind: 'asked'; id: number; from: number; key: string; handle: string }
  | { kind: 'answered'; id: number; answer: PeerAnswer }
  | { kind: 'call'; id: number; name: keyof Member; argument: unknown }
  | { kind: 'stop' };

/** An outcome, the failure of the upstream, or word that the worker itself has to ask. */
export type PeerAnswer =
  | { outcome: unknown; failure?: undefined }
  | { failure: PeerFailure; outcome?: undefined }
  | { outcome?: undefined; failure?: undefined };

/** A ServiceError on its way to another process. */
export interface PeerFailure {
  code: ErrorCode;
  message: string;
  retryAfterSeconds?: number;
  upstreamAnswer?: UpstreamAnswer;
}

const PREFIX = 'handle-proxy';

interface Envelope {
  type: typeof PREFIX;
  message: unknown;
}

/** Other parts of the process (the metrics) use the same channel. */
export function wrap(message: Up | Down): Envelope {
  return { type: PREFIX, message };
}

export function unwrap(received: unknown): unknown {
  const isOurs =
    typeof received === 'object' && received !== null && (received as Partial<Envelope>).type === PREFIX;
  return isOurs ? (received as Envelope).message : undefined;
}
