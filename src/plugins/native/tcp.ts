// TCP listener: one request and one response per connection, as on a Handle server.
import { type Server, type Socket, createServer } from 'node:net';
import type { Host } from '../../host.js';
import { appendChunk } from '../../handle/bytes.js';
import { type MemoryBudget, tooManyBodies } from '../../http/request-body.js';
import { firstOf } from '../../hooks.js';
import { RESPONSE_CODE } from '../../handle/outcome.js';
import { type Use, boundConnections } from '../../server/connections.js';
import { discardRest } from '../../server/discard.js';
import { UnsentCount } from '../../server/unsent.js';
import type { AdmitMessage, Incoming, NativeAnswer } from './answer.js';
import { ENVELOPE_BYTES, decodeEnvelope, frame } from './codec.js';
import {
  type AnsweredMessage,
  INVALID_LENGTH,
  READ_TIMED_OUT,
  type MessageProblem,
  cutOff,
  problemOfLength,
} from './reply.js';
import { createMessageReport } from './message-log.js';
import type { NativeConfig } from './plugin.js';

/** `onMessage` is called with the client's address after each complete message. */
export function createTcpServer(
  limits: NativeConfig['native']['tcp'] & { maxConnectionsPerNetwork: number },
  host: Host,
  native: NativeAnswer,
  onMessage: (address: string) => void,
): Server {
  /** Connections whose message has been received or rejected. */
  const answering = new WeakSet<Socket>();
  const answer = createTcpAnswer(host, native, onMessage);
  // A client that half-closes after its request still reads (recording "half-close after the request").
  // Nagle's algorithm does not delay the response, because the FIN follows it.
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    // Undefined after the client has disconnected.
    const { remoteAddress = '' } = socket;
    receiveMessage(socket, limits, host.bodies, (received) => {
      answering.add(socket);
      answer(socket, remoteAddress, received);
    });
  });
  const useOf = (socket: Socket): Use => {
    if (socket.bytesRead === 0) return 'unused';
    if (!answering.has(socket)) return 'receiving';
    // After the response, the client closes the connection.
    return socket.writableFinished ? 'idle' : 'busy';
  };
  const { isTrustedProxy } = host;
  boundConnections(server, limits, host, { listener: 'native-tcp', isTrustedProxy, useOf });
  return server;
}

function createTcpAnswer(host: Host, native: NativeAnswer, onMessage: (address: string) => void) {
  const { hooks, slicer } = host;
  const unsent = new UnsentCount(host.unsent, host, 'native-tcp');
  const report = createMessageReport(host);
  function send(socket: Socket, bytes: Buffer): void {
    socket.end(bytes);
    unsent.countWritten(socket, socket);
  }
  function respond(socket: Socket, client: string, work: () => ReturnType<NativeAnswer['answer']>): void {
    const inTurn = async (): Promise<AnsweredMessage> => slicer.run(work, { client });
    void Promise.resolve(report('native-tcp', inTurn)).then(({ reply }) => {
      send(socket, frame(reply.envelope, reply.message));
    });
  }
  return function answer(socket: Socket, address: string, received: Received): void {
    if ('problem' in received) {
      respond(socket, address, () => native.refuse(received.problem));
      return;
    }
    onMessage(address);
    const admit: AdmitMessage = (handle) => firstOf(hooks.admitMessage, (judge) => judge(address, handle));
    const prepared = native.answerPrepared(received.received, 'tcp');
    if (prepared !== undefined) send(socket, prepared);
    else respond(socket, address, () => native.answer({ ...received, admit }));
  };
}

/** Receives the message of a connection. `requestTimeoutMs` limits this, and then sending the response. */
function receiveMessage(
  socket: Socket,
  limits: NativeConfig['native']['tcp'],
  bodies: MemoryBudget,
  onReceived: (received: Received) => void,
): void {
  let isReceived = false;
  const receiver = createReceiver(bodies, (received) => {
    isReceived = true;
    socket.off('data', receiver.onData).off('end', receiver.onEnd);
    // With unread bytes, the kernel would reset the connection and lose the response.
    discardRest(socket);
    timer.refresh();
    onReceived(received);
  });
  const onTimeout = (): void => {
    if (isReceived) socket.destroy();
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

/** Creates a receiver of one message, which checks its length before it is buffered. */
function createReceiver(budget: MemoryBudget, done: (received: Received) => void) {
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
  const onData = (chunk: Buffer): void => {
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
  };
  const onEnd = (): void => finish({ problem: problemOfEnd(bytes.subarray(0, size)) });
  return { onData, onEnd, finish, free };
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
