// A replacement for the Handle server that sends mutated bytes or values, and truncates some responses.
import { type AddressInfo, type Socket, createServer } from 'node:net';
import { answersFor, goodAnswer } from './corpus.js';
import { type Random, randomFrom } from '../support/random.js';
import { below, breakUp, mutate, pick } from './mutate.js';
import { mutatedList, mutatedRecord } from './shapes.js';

const MOST_CHANGES = 3;

export interface FuzzedUpstream {
  url: string;
  /** Responds correctly to every later request. */
  heal: () => void;
  readonly mutated: number;
  close: () => void;
}

/** Starts a server that mutates its responses. The handle `21.T11998/<seed>` selects the mutations. */
export async function startFuzzedUpstream(): Promise<FuzzedUpstream> {
  const open = new Set<Socket>();
  let isHealed = false;
  let mutated = 0;
  const server = createServer((socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    socket.on('error', () => undefined);
    let received = '';
    socket.on('data', (bytes) => {
      received += bytes.toString('latin1');
      if (!received.includes('\r\n\r\n')) return;
      const [, isList, name = ''] = /\/api\/handles(\/|\?prefix=)([^?& ]*)/.exec(received) ?? [];
      const handle = decodeURIComponent(name);
      received = '';
      if (isHealed) socket.write(goodAnswer(handle));
      else {
        mutated++;
        answerMutated(socket, handle, isList === '?prefix=');
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    heal: () => {
      isHealed = true;
    },
    get mutated() {
      return mutated;
    },
    close: () => {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

function answerMutated(socket: Socket, handle: string, isList: boolean): void {
  const random = randomFrom(Number(/\d+$/.exec(handle)?.[0] ?? 0));
  const pieces = breakUp(random, isList ? listOf(random, handle) : mutatedAnswer(random, handle));
  const sendOn = (): void => {
    const piece = pieces.shift();
    if (piece !== undefined && socket.writable) socket.write(piece, () => setImmediate(sendOn));
    else socket.end();
  };
  sendOn();
}

/** Returns the mutated list for a prefix `21.T<seed>`: the handle with this seed and the next two. */
function listOf(random: Random, prefix: string): Buffer {
  const seed = Number(/\d+$/.exec(prefix)?.[0] ?? 0);
  const handles = [seed, seed + 1, seed + 2].map((one) => `21.T11998/${one}`);
  return withJsonBody('200 OK', mutatedList(random, prefix, handles));
}

const withJsonBody = (status: string, body: string): Buffer =>
  Buffer.from(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );

/** Returns the mutated response for a handle. Equal seeds give equal responses. */
export function mutatedAnswer(random: Random, handle: string): Buffer {
  if (random() < 0.5) {
    const { status, body } = mutatedRecord(random, handle);
    return withJsonBody(status, body);
  }
  const good = pick(random, answersFor(handle));
  const most = 1 + below(random, MOST_CHANGES);
  const bytes = random() < 0.5 ? mutate(random, good, most) : withMutatedBody(random, good, most);
  return random() < 0.1 ? bytes.subarray(0, below(random, bytes.length)) : bytes;
}

/** Mutates only the body, and corrects Content-Length. */
function withMutatedBody(random: Random, good: Buffer, most: number): Buffer {
  const at = good.indexOf('\r\n\r\n') + 4;
  const body = mutate(random, good.subarray(at), most);
  const head = good
    .toString('latin1', 0, at)
    .replace(/Content-Length: \d+/, `Content-Length: ${body.length}`);
  return Buffer.concat([Buffer.from(head, 'latin1'), body]);
}
