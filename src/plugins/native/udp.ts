// UDP listener for requests in one or more packets. Only senders proved over TCP get multi-packet responses.
import { createSocket, type RemoteInfo, type Socket, type SocketOptions } from 'node:dgram';
import { lookup } from 'node:dns';
import { isIP, isIPv6 } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { boundedMap } from '../../cache/bounded-map.js';
import type { Host } from '../../host.js';
import { maybe } from '../../maybe.js';
import { clientAt, plainAddress } from '../../http/client-address.js';
import { type Caller, UNKNOWN_CLIENTS } from '../../upstream/caller.js';
import type { Incoming, NativeAnswer } from './answer.js';
import {
  decodeEnvelope,
  type Envelope,
  ENVELOPE_BYTES,
  FULL_PACKET_BYTES,
  PACKET_BYTES,
  packetsOf,
  toPackets,
} from './codec.js';
import { createMessageReport, type ReportMessage } from './message-log.js';
import { METRICS, type NativeConfig } from './plugin.js';
import { type AnsweredMessage, problemOfLength, SERVER_ERROR } from './reply.js';

interface Peer {
  address: string;
  port: number;
  /** The network that a flood of responses would saturate. */
  network: string;
  /** Whether a TCP request has proved that the address is genuine. */
  isProved: boolean;
}

/** Maximum requests in flight, each of which may wait for the Handle server. */
const MAX_PENDING = 10_000;
/** Maximum bytes of requests in flight; above it, as above the number, the next are directed to TCP. */
const MAX_PENDING_BYTES = 8 * 1024 * 1024;

/** Minimum datagram length (bytes): the 74-byte refusal of a shorter datagram would amplify it tenfold. */
const MIN_BYTES = 8;

const TOO_MANY = 'Too many requests over UDP: use TCP';

/** The share of the CPU of all senders together, for the same reason as `admit`. */
const SENDERS = 'native-udp';

/** Gives all senders one identity, because UDP addresses can be forged. */
const admit = (): Caller => UNKNOWN_CLIENTS;

/** `isProved`: whether a TCP request has proved that an address, as `plainAddress` formats it, is genuine. */
export function createUdpListener(
  config: NativeConfig,
  host: Host,
  native: NativeAnswer,
  isProved: (address: string) => boolean,
) {
  const countLimited = host.metrics.counterOf(METRICS.udpLimited);
  const { deny, refuse } = native;
  const socket = openSocket(config);
  const limit = new AnswerLimit(config.native.udp.bytesPerSecond);
  const reassembly = new Reassembly();
  const send: SendPacket = (packet, { port, address, network }) => {
    limit.count(network, packet.length);
    // Passes no callback, because one would cost a tick; clients resend lost requests anyway.
    socket.send(packet, port, address);
  };
  const judge = ({ network }: Peer): LimitVerdict => {
    const verdict = limit.judge(network, host.clock.monotonic());
    if (verdict !== 'answer') countLimited({ reason: 'rate' });
    return verdict;
  };
  const { respond, pending } = createResponder(send, judge, createMessageReport(host));
  const answerWithin = createBoundedAnswer(native, host, pending);

  function receive(packet: Buffer, { address, port }: RemoteInfo): void {
    if (packet.length < MIN_BYTES) return;
    const { address: plain, network } = clientAt(address);
    const peer = { address, port, network: floodedNetworkOf(network), isProved: isProved(plain) };
    const verdict = judge(peer);
    if (verdict === 'drop' || (verdict === 'answer' && sendPrepared(packet, peer, native, send))) return;
    const { envelope, isPart, problem } = readPacket(packet);
    if (verdict === 'slip' && isPart) return;
    if (problem !== undefined) respond(peer, () => refuse(problem));
    else if (isPart) receivePart(envelope, packet, peer);
    else {
      const message = packet.subarray(ENVELOPE_BYTES, ENVELOPE_BYTES + envelope.length);
      const incoming: Incoming = { envelope, message, transport: 'udp', received: packet, admit };
      respond(peer, () => (verdict === 'slip' ? deny(incoming, TOO_MANY) : answerWithin(incoming, peer)));
    }
  }

  function receivePart(envelope: Envelope, packet: Buffer, peer: Peer): void {
    const request = reassembly.add(peer.address, envelope, packet, host.clock.monotonic());
    if (request === 'incomplete') return;
    respond(peer, () => {
      if (request === 'invalid') return refuse(SERVER_ERROR);
      const incoming: Incoming = { envelope, message: request.message, transport: 'udp', admit };
      return answerWithin(incoming, peer);
    });
  }

  socket.on('message', receive);
  return {
    socket,
    /** Closes the socket when the requests received before are answered, or after the timeout. */
    drain: async (timeoutMs: number): Promise<void> => {
      await Promise.race([Promise.all(pending), pause(timeoutMs, undefined, { ref: false })]);
      pending.clear();
      await new Promise<void>((resolve) => socket.close(resolve));
    },
  };
}

/** Parses a packet; `isPart` marks a message fragment. */
function readPacket(packet: Buffer) {
  const envelope = decodeEnvelope(packet);
  const isPart = envelope.isTruncated && packetsOf(envelope.length) > 1;
  return { envelope, isPart, problem: problemOfLength(envelope.length, 'udp') };
}

/** Opens the socket. `reusePort` lets other processes share the port. */
function openSocket({ native, server: { host, reusePort } }: NativeConfig): Socket {
  const options: SocketOptions & { reusePort?: boolean } = {
    type: isIPv6(native.host ?? host) ? 'udp6' : 'udp4',
    ...(reusePort && { reusePort }),
    // Skips the DNS lookup of IP addresses, which would delay each response by an event-loop turn.
    lookup: (name, options, found) => {
      if (isIP(name) === 0) lookup(name, options, found);
      else found(null, name, isIP(name));
    },
  };
  // Receiving or sending may fail; without a listener, the error would end the process.
  return createSocket(options).on('error', () => undefined);
}

type Respond = (peer: Peer, work: () => AnsweredMessage | Promise<AnsweredMessage>) => void;

type SendPacket = (packet: Buffer, peer: Peer) => void;

function sendPrepared(packet: Buffer, peer: Peer, native: NativeAnswer, send: SendPacket): boolean {
  const packets = native.answerPrepared(packet, 'udp', peer.isProved ? Infinity : FULL_PACKET_BYTES);
  if (packets === undefined) return false;
  for (let at = 0; at < packets.length; at += FULL_PACKET_BYTES)
    send(packets.subarray(at, at + FULL_PACKET_BYTES), peer);
  return true;
}

function createResponder(
  send: SendPacket,
  judge: (peer: Peer) => LimitVerdict,
  report: ReportMessage,
): { respond: Respond; pending: Set<Promise<unknown>> } {
  const pending = new Set<Promise<unknown>>();
  const sendAll = (peer: Peer, { reply }: AnsweredMessage): void => {
    for (const packet of toPackets(reply.envelope, reply.message)) send(packet, peer);
  };
  const respond: Respond = (peer, work) => {
    const answered = report('native-udp', work);
    if (!(answered instanceof Promise)) {
      sendAll(peer, answered);
      return;
    }
    const sent = answered.then((later) => {
      // A stop has closed the socket, whose `send` would throw and end the process.
      if (!pending.delete(sent)) return;
      // Responses to requests that arrived together are counted only now; clients resend what is dropped.
      if (judge(peer) === 'answer') sendAll(peer, later);
    });
    pending.add(sent);
  };
  return { respond, pending };
}

/**
 * Prevents amplification: a forged sender could direct long responses to a victim, so unproved senders get at
 * most one packet. Code 2 makes the client switch to TCP immediately.
 */
function createBoundedAnswer(
  { answer, deny }: NativeAnswer,
  { slicer, metrics }: Host,
  pending: ReadonlySet<unknown>,
): (incoming: Incoming, peer: Peer) => AnsweredMessage | Promise<AnsweredMessage> {
  const countLimited = metrics.counterOf(METRICS.udpLimited);
  let pendingBytes = 0;
  return function answerWithin(incoming, { isProved }) {
    if (pending.size >= MAX_PENDING || pendingBytes >= MAX_PENDING_BYTES) {
      countLimited({ reason: 'busy' });
      return deny(incoming, TOO_MANY);
    }
    // A message keeps the whole datagram in memory, which may be longer.
    const { length } = incoming.received ?? incoming.message;
    pendingBytes += length;
    const end = (answered: AnsweredMessage): AnsweredMessage => {
      pendingBytes -= length;
      if (answered.isTooLong) countLimited({ reason: 'size' });
      return answered;
    };
    const maxAnswerBytes = isProved ? undefined : PACKET_BYTES;
    const answered = answer({
      ...incoming,
      maxAnswerBytes,
      // A datagram of a few bytes may name a record of 2 MiB.
      inSlice: async (work) => slicer.run(work, { client: SENDERS }),
    });
    return maybe(answered, end);
  };
}

/** Timeout from the first packet of an incomplete request (ms), as on a Handle server. */
const LIFE_MS = 5000;

/** Maximum total bytes of incomplete requests; above it, the oldest are dropped. */
const MAX_TOTAL_BYTES = 4 * 1024 * 1024;

/** Estimated overhead per packet for map entry, buffer and object (bytes). */
const OVERHEAD_BYTES = 200;

interface Incomplete {
  since: number;
  /** Received packets by sequence number; missing packets use no memory. */
  packets: Map<number, Buffer>;
  bytes: number;
}

/** `incomplete` while packets are missing, `invalid` for a packet that does not match its message. */
type Reassembled = { message: Buffer } | 'incomplete' | 'invalid';

/** Reassembles fragmented UDP requests (RFC 3652 §2.1.2). */
export class Reassembly {
  readonly #incomplete = new Map<string, Incomplete>();
  #totalBytes = 0;

  /** Adds a packet, in any order. `client`: an address without port, as on a Handle server. */
  add(client: string, { requestId, length, sequence }: Envelope, packet: Buffer, now: number): Reassembled {
    const count = packetsOf(length);
    const part = packet.subarray(ENVELOPE_BYTES);
    const expected = sequence === count - 1 ? length - sequence * PACKET_BYTES : PACKET_BYTES;
    if (sequence < 0 || sequence >= count || part.length < expected) return 'invalid';
    this.#forgetOldest(now);
    const key = `${client} ${requestId} ${length}`;
    const request: Incomplete = this.#incomplete.get(key) ?? { since: now, packets: new Map(), bytes: 0 };
    if (!request.packets.has(sequence)) {
      const bytes = expected + OVERHEAD_BYTES;
      // Copies, because a part keeps the whole datagram in memory, of up to 64 KiB; without the pool of `Buffer.from`,
      // of which a part of a few bytes keeps 8 KiB.
      const copy = Buffer.alloc(expected);
      part.copy(copy);
      request.packets.set(sequence, copy);
      request.bytes += bytes;
      this.#totalBytes += bytes;
    }
    this.#incomplete.set(key, request);
    if (request.packets.size < count) {
      this.#forgetOldest(now);
      return 'incomplete';
    }
    this.#forget(key, request);
    const inOrder = Array.from({ length: count }, (_, at) => request.packets.get(at) ?? Buffer.alloc(0));
    return { message: Buffer.concat(inOrder) };
  }

  /** Forgets the oldest requests: those past their timeout, and as many as exceed the memory bound. */
  #forgetOldest(now: number): void {
    for (const [key, request] of this.#incomplete) {
      if (now - request.since < LIFE_MS && this.#totalBytes <= MAX_TOTAL_BYTES) return;
      this.#forget(key, request);
    }
  }

  #forget(key: string, { bytes }: Incomplete): void {
    this.#incomplete.delete(key);
    this.#totalBytes -= bytes;
  }
}

// Addresses proved by a TCP request, whose handshake a forged sender cannot complete.

const MAX_ADDRESSES = 100_000;
const SENDER_LIFE_MS = 60 * 60 * 1000;

export function createProvedSenders(now: () => number) {
  // Each message sets its address. An ExpiringMap would remove and add it, whose remains make a large Map slow (0.1 ms).
  const addresses = boundedMap<true>(MAX_ADDRESSES, { ttl: SENDER_LIFE_MS, now });
  return {
    add: (address: string): void => {
      addresses.set(plainAddress(address), true);
    },
    /** `address`: as `plainAddress` formats it. */
    has: (address: string): boolean => addresses.has(address),
  };
}

// Response rate limiting per network, as in DNS servers, because UDP sender addresses can be forged.

/** Every second request above the limit gets code 2, which makes honest clients switch to TCP. */
const SLIP = 2;

/** Maximum counters per second; further networks share one counter. */
const MAX_NETWORKS = 65_536;

export type LimitVerdict = 'answer' | 'slip' | 'drop';

interface SentBytes {
  bytes: number;
  /** Requests above the limit. */
  refused: number;
}

/** Limits bytes per network and second. */
export class AnswerLimit {
  #sent = new Map<string, SentBytes>();
  #second = 0;

  /** `bytesPerSecond` 0 disables the limit. */
  constructor(private readonly bytesPerSecond: number) {}

  judge(network: string, now: number): LimitVerdict {
    if (this.bytesPerSecond === 0) return 'answer';
    const second = Math.floor(now / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#sent = new Map();
    }
    const sent = this.#sentTo(network);
    if (sent.bytes < this.bytesPerSecond) return 'answer';
    return ++sent.refused % SLIP === 1 ? 'slip' : 'drop';
  }

  count(network: string, bytes: number): void {
    if (this.bytesPerSecond > 0) this.#sentTo(network).bytes += bytes;
  }

  #sentTo(network: string): SentBytes {
    const key = this.#sent.has(network) || this.#sent.size < MAX_NETWORKS - 1 ? network : '';
    const sent = this.#sent.get(key) ?? { bytes: 0, refused: 0 };
    this.#sent.set(key, sent);
    return sent;
  }
}

/** Returns the network that a response flood to a client's network would saturate: IPv4 /24 or IPv6 /48. */
export const floodedNetworkOf = (network: string): string => network.replace(/:[\da-f]{1,4}::\/56$/, '::/48');
