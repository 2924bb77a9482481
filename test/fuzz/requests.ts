// Sends mutated requests over many connections and reads the responses.
import { connect } from 'node:net';
import { hostileRequest } from './bodies.js';
import { LAST, REQUESTS } from './corpus.js';
import { type Random, randomFrom } from '../support/random.js';
import { below, breakUp, mutate, pick } from './mutate.js';
import { readWellFormed } from './well-formed.js';

export interface Sent {
  requests: number;
  connections: number;
  /** Number of responses by status. */
  statuses: Map<number, number>;
}

const AT_A_TIME = 16;
const MOST_PER_CONNECTION = 16;
const MUTATED = 0.2;
/** Share of requests with a body of a hostile shape. */
const HOSTILE = 0.03;
const MOST_CHANGES = 4;
/** Timeout for a connection, far longer than any proxy timeout in the tests. */
const HANG_MS = 20_000;
const QUIET_MS = 250;

/**
 * Sends at least `count` mutated requests.
 * @throws Error with the seed of the connection if a response is not HTTP, or the connection does not end
 */
export async function fuzzRequests(
  url: string,
  { seed, count }: { seed: number; count: number },
): Promise<Sent> {
  const sent: Sent = { requests: 0, connections: 0, statuses: new Map() };
  const work = async (): Promise<void> => {
    while (sent.requests < count) {
      const seedHere = seed + sent.connections++;
      const { bytes, requests } = bytesFor(seedHere);
      sent.requests += requests;
      await fuzzConnection(url, { seed: seedHere, bytes, statuses: sent.statuses });
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  return sent;
}

/**
 * Returns the bytes for the connection with this seed. Most requests stay valid, because the first invalid
 * request ends the connection.
 */
export function bytesFor(seed: number): { bytes: Buffer; requests: number; random: Random } {
  const random = randomFrom(seed);
  const parts = Array.from({ length: 1 + below(random, MOST_PER_CONNECTION) }, () => {
    if (random() < HOSTILE) return hostileRequest(random);
    const request = pick(random, REQUESTS);
    return random() < MUTATED ? mutate(random, request, MOST_CHANGES) : request;
  });
  return { bytes: Buffer.concat([...parts, LAST]), requests: parts.length, random };
}

async function fuzzConnection(
  url: string,
  { seed, bytes, statuses }: { seed: number; bytes: Buffer; statuses: Map<number, number> },
): Promise<void> {
  const received = await sendAndReceive(url, bytes, randomFrom(seed ^ 0x5eed)).catch((error: unknown) => {
    throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
  });
  try {
    for (const status of readWellFormed(received).statuses) {
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  } catch (error) {
    throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
  }
}

/**
 * Sends the bytes in pieces, closes the sending side once no more responses arrive, and resolves with all
 * received bytes when the server closes. `quietMs` is infinite if the bytes make the server close.
 */
export function sendAndReceive(
  url: string,
  bytes: Buffer,
  random: Random,
  quietMs = QUIET_MS,
): Promise<Buffer> {
  const { hostname, port } = new URL(url);
  const chunks: Buffer[] = [];
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(port), host: hostname, noDelay: true });
    const hung = setTimeout(() => {
      socket.destroy();
      reject(new Error(`not closed after ${HANG_MS} ms`));
    }, HANG_MS);
    let quiet: NodeJS.Timeout | undefined;
    // Closing the sending side truncates no response, but ends an incomplete request.
    const endWhenQuiet = (): void => {
      clearTimeout(quiet);
      if (quietMs !== Infinity) quiet = setTimeout(() => socket.end(), quietMs);
    };
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      if (quiet !== undefined) endWhenQuiet();
    });
    // The server may close during a write.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') reject(error);
    });
    socket.once('close', () => {
      clearTimeout(hung);
      clearTimeout(quiet);
      resolve(Buffer.concat(chunks));
    });
    const pieces = breakUp(random, bytes);
    const sendOn = (): void => {
      const piece = pieces.shift();
      if (piece === undefined) endWhenQuiet();
      else if (socket.writable) socket.write(piece, () => setImmediate(sendOn));
    };
    socket.once('connect', sendOn);
  });
}
