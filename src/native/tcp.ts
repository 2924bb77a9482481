// The TCP listener: one message a connection, as a Handle server does, then its answer and the end.
import { type Server, type Socket, createServer } from 'node:net';
import type { ServiceError } from '../errors.js';
import { type MemoryBudget, appendChunk } from '../http/request-body.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import { type ConnectionBounds, type Use, boundConnections } from '../server/connection-bounds.js';
import type { Answered, NativeAnswer, ReportMessage } from './answer.js';
import { type Envelope, ENVELOPE_BYTES, decodeEnvelope } from './codec/envelope.js';
import { frame } from './codec/message.js';
import { INVALID_LENGTH, READ_TIMED_OUT, type Problem, cutOff, problemOfLength } from './unreadable.js';

export interface TcpLimits extends ConnectionBounds {
  /** Without traffic (ms). */
  idleTimeout: number;
  /** For the whole message, and again for the client to take the answer (ms). */
  requestTimeout: number;
}

export interface TcpDeps extends NativeAnswer {
  limits: TcpLimits;
  /** Of messages that did not come in one piece. */
  bodies: MemoryBudget;
  report: ReportMessage;
}

export function createTcpServer(deps: TcpDeps): Server {
  // A client that closes its side after the request still reads (recording "half-close after the request").
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    serveConnection(socket, deps);
  });
  boundConnections(server, deps.limits, useOf);
  return server;
}

/** Answered connections wait for their clients to close them. */
function useOf(socket: Socket): Use {
  if (socket.bytesRead === 0) return 'unused';
  return socket.writableFinished ? 'idle' : 'busy';
}

function serveConnection(socket: Socket, { limits, bodies, report, answer, refuse }: TcpDeps): void {
  const send = ({ reply }: Answered): void => {
    socket.end(frame(reply.envelope, reply.message));
    // Unread bytes would make the kernel reset the connection, and the client lose the answer.
    socket.resume();
  };
  const respond = (work: () => Answered | Promise<Answered>): void => {
    clearTimeout(timer);
    timer = setTimeout(() => socket.destroy(), limits.requestTimeout).unref();
    socket.off('timeout', onTimeout).once('timeout', () => socket.destroy());
    const answered = report('native-tcp', work);
    if (answered instanceof Promise) void answered.then(send);
    else send(answered);
  };
  const onTimeout = (): void => {
    receiver.stop();
    respond(() => refuse(READ_TIMED_OUT));
  };
  const receiver = receive(socket, bodies, (received) => {
    respond(() => ('problem' in received ? refuse(received.problem) : answer(received)));
  });
  let timer = setTimeout(onTimeout, limits.requestTimeout).unref();
  socket.setTimeout(limits.idleTimeout).once('timeout', onTimeout);
  // A client that has gone; without a listener the process would end.
  socket.on('error', () => undefined);
  socket.once('close', () => {
    clearTimeout(timer);
    receiver.stop();
  });
}

type Received = { envelope: Envelope; message: Buffer; transport: 'tcp' } | { problem: Problem };

/** Calls `done` once, with the first message. Its length is judged before the message is kept. */
function receive(
  socket: Socket,
  budget: MemoryBudget,
  done: (received: Received) => void,
): { stop: () => void } {
  let bytes: Buffer = Buffer.alloc(0);
  let size = 0;
  /** In the budget: a message in one piece is not. */
  let counted = 0;
  const free = (): void => {
    budget.free(counted);
    bytes = Buffer.alloc(0);
    counted = 0;
  };
  const stop = (): void => {
    budget.arriving.delete(upload);
    socket.off('data', onData).off('end', onEnd);
  };
  const finish = (received: Received): void => {
    stop();
    done(received);
  };
  const upload = {
    refuse: ({ message: text }: ServiceError): void => {
      free();
      finish({ problem: { responseCode: RESPONSE_CODE.error, text } });
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
    budget.arriving.add(upload);
    budget.add(size - counted);
    counted = size;
  };
  const onEnd = (): void => {
    finish({ problem: problemOfEnd(bytes.subarray(0, size)) });
  };
  socket.on('data', onData).once('end', onEnd).once('close', free);
  return { stop };
}

/** Undefined as long as more must come. */
function readReceived(bytes: Buffer): Received | undefined {
  if (bytes.length < ENVELOPE_BYTES) return undefined;
  const envelope = decodeEnvelope(bytes);
  const problem = problemOfLength(envelope.length, 'tcp');
  if (problem !== undefined) return { problem };
  if (bytes.length < ENVELOPE_BYTES + envelope.length) return undefined;
  // What follows it is not read, as by a Handle server (recording "KPAL, three requests sent at once (pipelined)").
  const message = bytes.subarray(ENVELOPE_BYTES, ENVELOPE_BYTES + envelope.length);
  return { envelope, message, transport: 'tcp' };
}

function problemOfEnd(bytes: Buffer): Problem {
  if (bytes.length < ENVELOPE_BYTES) return INVALID_LENGTH;
  return cutOff(decodeEnvelope(bytes).length, bytes.length - ENVELOPE_BYTES);
}
