// The messages between the primary process and its workers.
import type { ProcessControl } from '../../admin/operations.js';
import type { Moment } from '../../cache/coherence/lease.js';
import type { Change, Message } from '../../cache/coherence/message.js';
import type { Config } from '../../config/schema.js';
import type { PassedPacket } from '../../native/udp.js';
import type { PublicAddresses } from '../serve.js';
import type { WorkerLoad } from './connection-balance.js';
import type { Caller } from '../../upstream/caller.js';
import { type Diagnosis, type ErrorCode, ServiceError, type UpstreamAnswer } from '../../errors.js';

/** From a worker to the primary. `id` is the worker's number for its request. */
export type WorkerMessage =
  /** Ready to receive the configuration. */
  | { kind: 'starting' }
  | { kind: 'listening'; addresses: PublicAddresses }
  /** The worker exits. */
  | { kind: 'start-failed'; reason: string; exitCode: number }
  /** Sent after `listening` and then periodically, with the names of the failed checks. */
  | { kind: 'report'; notReady: string[]; load: WorkerLoad }
  /** Sent periodically; `requestedAt` is the moment of sending by the worker's clock. */
  | { kind: 'renew-lease'; requestedAt: Moment }
  /** Publish a change to every process that caches. */
  | { kind: 'publish'; id: number; change: Change }
  /** Send the line to all other workers. */
  | { kind: 'coordination'; id: number; line: string }
  /** Acknowledges `apply` and `coordination`. */
  | { kind: 'applied'; id: number }
  /** Let the worker `owner` load the handle from the upstream. */
  | { kind: 'load'; id: number; owner: number; key: string; handle: string; caller?: Caller | undefined }
  | { kind: 'loaded'; id: number; from: number; answer: PeerAnswer }
  /** A UDP packet for the worker `owner`, which puts its request together. */
  | { kind: 'packet'; owner: number; packet: PassedPacket }
  /** `client` identifies the client that wants to write. */
  | { kind: 'acquire-lock'; id: number; key: string; client: string }
  /** Release the lock, or stop waiting for it. */
  | { kind: 'release-lock'; id: number; key: string }
  | { kind: 'call-reply'; id: number; value?: unknown; failure?: PeerFailure | string }
  /** This worker accepts no more connections. */
  | { kind: 'listener-closed' };

/** From the primary to a worker. */
export type PrimaryMessage = ControlMessage | PeerMessage;

/** What the worker as a process has to do. */
export type ControlMessage =
  /** The undivided configuration: at the start, and after a reload. */
  | { kind: 'config'; config: Config }
  /** An operator's call on the admin listener. */
  | { kind: 'call'; id: number; name: keyof ProcessControl; argument: unknown }
  | { kind: 'stop' }
  /** End this many connections: their clients connect again, to a less busy worker. */
  | { kind: 'end-connections'; count: number }
  /** Answers `listener-closed` when no worker that stops accepts connections any more. */
  | { kind: 'listeners-closed' };

const CONTROL: ReadonlySet<string> = new Set<ControlMessage['kind']>([
  'config',
  'call',
  'stop',
  'end-connections',
  'listeners-closed',
]);

export const isControl = (message: PrimaryMessage): message is ControlMessage => CONTROL.has(message.kind);

/** For the worker's link to the others. */
export type PeerMessage =
  /** The ids of all workers in order, the receiver included. */
  | { kind: 'workers'; ids: number[] }
  /** Every message from before `requestedAt` has been sent. `instanceLeaseMs`: the rest of the instance's lease. */
  | { kind: 'lease'; requestedAt: Moment; instanceLeaseMs: number }
  | { kind: 'apply'; id: number; message: Message }
  | { kind: 'coordination'; id: number; line: string }
  /** Answers `publish` and `coordination`. */
  | { kind: 'delivered'; id: number; failure?: PeerFailure }
  /** `freeMs`: the time since another client held the lock. */
  | { kind: 'lock-granted'; id: number; freeMs: number }
  /** The queue is full. */
  | { kind: 'lock-refused'; id: number }
  | { kind: 'load'; id: number; from: number; key: string; handle: string; caller?: Caller | undefined }
  | { kind: 'loaded'; id: number; answer: PeerAnswer }
  | { kind: 'packet'; packet: PassedPacket };

/** An outcome, the failure of the upstream, or neither: then the worker has to load by itself. */
export type PeerAnswer =
  | { outcome: unknown; failure?: undefined }
  | { failure: PeerFailure; outcome?: undefined }
  | { outcome?: undefined; failure?: undefined };

/** A ServiceError without its cause, which is in the log of the process where it occurred. */
export interface PeerFailure {
  code: ErrorCode;
  message: string;
  diagnosis?: Diagnosis;
  retryAfterSeconds?: number;
  upstreamAnswer?: UpstreamAnswer;
}

export function packFailure(error: ServiceError): PeerFailure {
  const { code, message, diagnosis, retryAfterSeconds, upstreamAnswer } = error;
  return {
    code,
    message,
    ...(diagnosis && { diagnosis }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(upstreamAnswer && { upstreamAnswer }),
  };
}

export function unpackFailure(failure: PeerFailure): ServiceError {
  const { code, message, diagnosis, retryAfterSeconds, upstreamAnswer } = failure;
  const retryAfterMs = retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1000;
  return new ServiceError(code, {
    message,
    diagnosis,
    retryAfterMs,
    ...(upstreamAnswer && { upstreamAnswer }),
  });
}

const PREFIX = 'handle-proxy';

interface Envelope {
  type: typeof PREFIX;
  message: unknown;
}

/** The metrics library uses the same channel, so each message carries our name. */
export function wrap(message: WorkerMessage | PrimaryMessage): Envelope {
  return { type: PREFIX, message };
}

/** @returns undefined for a message of another library */
export function unwrap(received: unknown): unknown {
  const isOurs =
    typeof received === 'object' && received !== null && (received as Partial<Envelope>).type === PREFIX;
  return isOurs ? (received as Envelope).message : undefined;
}
