// Reads the body of a request that is passed on, as a whole, before anything is taken for it.
import type { IncomingMessage } from 'node:http';
import { ServiceError } from '../errors.js';

export interface RequestBodyDeps {
  maxBodyBytes: number;
  /** What all bodies under way may take together. */
  roomBytes: number;
}

/**
 * Does the work once the body is here; its memory counts until the work is done.
 *
 * @throws ServiceError BODY_TOO_LARGE, OVERLOADED, or BAD_REQUEST when it breaks off
 */
export type WithBody = <T>(req: IncomingMessage, work: (body: Buffer) => Promise<T>) => Promise<T>;

/** When somebody whose body found no room may come again. */
const COME_AGAIN_MS = 1000;

interface Upload {
  refuse: (failure: ServiceError) => void;
}

/** Who receives, and how much memory all bodies take. */
interface Room {
  unfinished: Set<Upload>;
  add: (bytes: number) => void;
  free: (bytes: number) => void;
}

/**
 * Who sends slowly keeps nobody from writing: no handle is fenced and no turn is taken while a body
 * trickles in. How long one may take is up to the server.
 */
export function createWithBody({ maxBodyBytes, roomBytes }: RequestBodyDeps): WithBody {
  const room = createRoom(roomBytes);
  return async function withBody(req, work) {
    if (Number(req.headers['content-length'] ?? 0) > maxBodyBytes) throw tooLarge(maxBodyBytes);
    const body = await receive(req, room, maxBodyBytes);
    try {
      return await work(body);
    } finally {
      room.free(body.length);
    }
  };
}

/**
 * The body that has been on its way longest has to go first, because those of honest callers arrive
 * within moments.
 */
function createRoom(roomBytes: number): Room {
  const unfinished = new Set<Upload>();
  const detail = 'too many bodies are on their way';
  let takenBytes = 0;
  return {
    unfinished,
    add(bytes) {
      takenBytes += bytes;
      for (const oldest of unfinished) {
        if (takenBytes <= roomBytes) return;
        oldest.refuse(new ServiceError('OVERLOADED', { detail, retryAfterMs: COME_AGAIN_MS }));
      }
    },
    free(bytes) {
      takenBytes -= bytes;
    },
  };
}

function receive(req: IncomingMessage, room: Room, maxBodyBytes: number): Promise<Buffer> {
  let bytes: Buffer = Buffer.alloc(0);
  let size = 0;
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      room.unfinished.delete(upload);
      req.off('data', take).off('end', finish).off('close', breakOff);
    };
    const refuse = (failure: ServiceError): void => {
      stop();
      room.free(size);
      // What still comes is read and dropped: it is not the next request.
      req.resume();
      reject(failure);
    };
    const take = (chunk: Buffer): void => {
      bytes = append(bytes, size, chunk);
      size += chunk.length;
      room.add(chunk.length);
      if (size > maxBodyBytes && room.unfinished.has(upload)) refuse(tooLarge(maxBodyBytes));
    };
    const finish = (): void => {
      stop();
      resolve(bytes.subarray(0, size));
    };
    const breakOff = (): void => {
      refuse(new ServiceError('BAD_REQUEST', { detail: 'the body broke off' }));
    };
    const upload: Upload = { refuse };
    room.unfinished.add(upload);
    req.on('data', take).once('end', finish).once('close', breakOff);
    req.on('error', () => undefined);
  });
}

/** One buffer that grows: a list of chunks of a byte each would take a hundred times what they hold. */
function append(bytes: Buffer, size: number, chunk: Buffer): Buffer {
  const needed = size + chunk.length;
  const roomy = needed <= bytes.length ? bytes : Buffer.alloc(Math.max(needed, 2 * bytes.length));
  if (roomy !== bytes) bytes.copy(roomy, 0, 0, size);
  chunk.copy(roomy, size);
  return roomy;
}

const tooLarge = (maxBodyBytes: number): ServiceError =>
  new ServiceError('BODY_TOO_LARGE', { detail: `at most ${maxBodyBytes} bytes are accepted` });
