// TCP listener: one request and one response per connection, as on a Handle server.
import { type Server, type Socket, createServer } from 'node:net';
import type { Context } from '../../context.js';
import { appendChunk } from '../../handle/bytes.js';
import { type MemoryBudget, tooManyBodies } from '../../http/request-body.js';
import { type Hooks, firstOf } from '../../hooks.js';
import { RESPONSE_CODE } from '../../handle/response-codes.js';
import { type Use, boundConnections } from '../../server/connection-bounds.js';
import type { ClientConnections } from '../../server/http-server.js';
import { type CountUnsent, createUnsentCount } from '../../server/unsent.js';
import type { Incoming, NativeAnswer } from './answer.js';
import { ENVELOPE_BYTES, decodeEnvelope, frame } from './codec.js';
import {
  type AnsweredMessage,
  INVALID_LENGTH,
  READ_TIMED_OUT,
  type MessageProblem,
  cutOff,
  problemOfLength,
} from './reply.js';
import { type TimeSlicer, inOneStep } from '../../time-slicer.js';
import { type ReportMessage, createReport } from './message-log.js';
import type { AdmitMessage } from './resolve.js';
import type { NativeConfig } from './plugin.js';
type TcpSettings = Omit<NativeConfig['native']['tcp'], 'port'> &
  Pick<NativeConfig['server'], 'maxConnectionsPerNetwork'>;

export interface TcpParts extends ClientConnections {
  native: NativeAnswer;
  slicer: TimeSlicer;
  /** Memory budget for messages that arrive in several chunks. */
  bodies: MemoryBudget;
  /** Called with the client's address after each complete message. */
  onMessage: (address: string) => void;
  hooks: Pick<Hooks, 'admitMessage'>;
}

export function createTcpServer(limits: TcpSettings, context: Context, parts: TcpParts): Server {
  /** Connections whose message has been received or rejected. */
  const answering = new WeakSet<Socket>();
  const countUnsent = createUnsentCount(parts.unsent, context, 'native-tcp');
  const report = createReport(context);
  // A client that half-closes after its request still reads (recording "half-close after the request").
  // Nagle's algorithm does not delay the response, because the FIN follows it.
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    serveConnection(socket, { ...parts, limits, countUnsent, report }, answering);
  });
  const useOf = (socket: Socket): Use => {
    if (socket.bytesRead === 0) return 'unused';
    if (!answering.has(socket)) return 'receiving';
    // After the response, the client closes the connection.
    return socket.writableFinished ? 'idle' : 'busy';
  };
  const { isTrustedProxy } = parts;
  boundConnections(server, limits, context, { listener: 'native-tcp', isTrustedProxy, useOf });
  return server;
}

interface ConnectionDeps extends TcpParts {
  /** `requestTimeoutMs` limits receiving the whole message, and separately sending the response. */
  limits: TcpSettings;
  countUnsent: CountUnsent;
  report: ReportMessage;
}

function serveConnection(socket: Socket, deps: ConnectionDeps, answering: WeakSet<Socket>): void {
  const { limits, bodies, report } = deps;
  const { answerPrepared, answer, refuse } = deps.native;
  // Undefined after the client has disconnected.
  const { remoteAddress = '' } = socket;
  const admit: AdmitMessage = (handle) =>
    firstOf(deps.hooks.admitMessage, (judge) => judge(remoteAddress, handle));
  const send = (bytes: Buffer): void => {
    socket.end(bytes);
    deps.countUnsent(socket, socket);
    // Drains the input: with unread bytes the kernel would reset the connection and lose the response.
    socket.resume();
  };
  const sendReply = ({ reply }: AnsweredMessage): void => {
    send(frame(reply.envelope, reply.message));
  };
  const respond = (work: () => AnsweredMessage | Promise<AnsweredMessage>): void => {
    const inTurn = async (): Promise<AnsweredMessage> =>
      deps.slicer.run(inOneStep(work), { client: remoteAddress });
    void Promise.resolve(report('native-tcp', inTurn)).then(sendReply);
  };
  const receiver = createReceiver(bodies, (received) => {
    answering.add(socket);
    socket.off('data', receiver.onData).off('end', receiver.onEnd);
    timer.refresh();
    if (!('problem' in received)) deps.onMessage(remoteAddress);
    const prepared = 'problem' in received ? undefined : answerPrepared(received.received, 'tcp');
    if (prepared !== undefined) send(prepared);
    else respond(() => ('problem' in received ? refuse(received.problem) : answer({ ...received, admit })));
  });
  const onTimeout = (): void => {
    if (answering.has(socket)) socket.destroy();
    else receiver.finish({ problem: READ_TIMED_OUT });
  };
  const timer = setTimeout(onTimeout, limits.requestTimeoutMs).unref();
  socket.setTimeout(limits.idleTimeoutMs);
  socket.on('timeout', onTimeout).on('data', receiver.onData).on('end', receiver.onEnd);
  // The client may disconnect; without a listener, the error would end the process.
  socket.on('error', () => undefined);
  socket.on('close', () => {
    clearTimeout(timer);
    receiver.free();
  });
}

type Received = (Incoming & { received: Buffer }) | { problem: MessageProblem };

interface Receiver {
  onData: (chunk: Buffer) => void;
  /** Called when the client half-closes the connection. */
  onEnd: () => void;
  finish: (received: Received) => void;
  /** Releases the memory of a closed connection. */
  free: () => void;
}

/**
 * Creates a receiver that calls `done` once, with the first message. Checks the
 * message length before buffering.
 */
function createReceiver(budget: MemoryBudget, done: (received: Received) => void): Receiver {
  let bytes: Buffer = NO_BYTES;
  let size = 0;
  /** Bytes charged to the budget; 0 for a message in a single chunk. */
  let counted = 0;
  const free = (): void => {
    budget.holders.delete(upload);
    budget.free(counted);
    bytes = NO_BYTES;
    counted = 0;
  };
  const finish = (received: Received): void => {
    budget.holders.delete(upload);
    done(received);
  };
  const upload = {
    giveWay(): void {
      free();
      finish({ problem: { responseCode: RESPONSE_CODE.error, text: tooManyBodies().message } });
    },
  };
  return {
    onData(chunk) {
      bytes = size === 0 ? chunk : appendChunk(bytes, size, chunk);
      size += chunk.length;
      const received = readReceived(bytes.subarray(0, size));
      if (received !== undefined) {
        finish(received);
        return;
      }
      budget.holders.add(upload);
      budget.add(size - counted);
      counted = size;
    },
    onEnd() {
      finish({ problem: problemOfEnd(bytes.subarray(0, size)) });
    },
    finish,
    free,
  };
}

const NO_BYTES = Buffer.alloc(0);

/** Parses the received bytes; undefined while the message is incomplete. */
function readReceived(bytes: Buffer): Received | undefined {
  if (bytes.length < ENVELOPE_BYTES) return undefined;
  const envelope = decodeEnvelope(bytes);
  const problem = problemOfLength(envelope.length, 'tcp');
  if (problem !== undefined) return { problem };
  if (bytes.length < ENVELOPE_BYTES + envelope.length) return undefined;
  // Ignores later bytes, as a Handle server does (recording "KPAL, three requests …").
  const message = bytes.subarray(ENVELOPE_BYTES, ENVELOPE_BYTES + envelope.length);
  return { envelope, message, transport: 'tcp', received: bytes };
}

function problemOfEnd(bytes: Buffer): MessageProblem {
  if (bytes.length < ENVELOPE_BYTES) return INVALID_LENGTH;
  return cutOff(decodeEnvelope(bytes).length, bytes.length - ENVELOPE_BYTES);
}
