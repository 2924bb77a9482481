// Receives request bodies within a limit per body and a total limit, decompresses them and parses JSON within limits.
import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { type ErrorKind, ServiceError, errorText } from '../errors.js';
import { appendChunk } from '../handle/bytes.js';
import { type JsonLimits, JsonLimitError, parseWithin } from '../handle/json.js';
import { createDecompressor, decompressBody, isCoding } from '../handle/streams.js';
import { createReadTurns } from './read-turns.js';

/**
 * Receives the body, decompresses it if it is to be read (`codes`), and passes it to `work`. Its bytes count towards the
 * budget until `work` ends.
 *
 * @throws ServiceError BODY_TOO_LARGE, OVERLOADED, BAD_REQUEST for an incomplete body, or one of `codes`
 */
export type WithBody = <T>(
  req: IncomingMessage,
  work: (body: Buffer) => T | Promise<T>,
  codes?: BodyCodes,
) => Promise<T>;

/** The errors of an interface for an unreadable body and for an unknown encoding. */
interface BodyCodes {
  invalid: ErrorKind;
  encoding: ErrorKind;
}

/** A memory holder, such as an upload, that can release its memory. */
interface MemoryHolder {
  /** Whether the holder has progressed since the previous call; if so, other holders release memory first. */
  hasMoved?: () => boolean;
  giveWay: () => void;
}

/** Budget for memory held on behalf of clients, with its holders. */
export interface MemoryBudget {
  /** Holders that can release memory, the longest without progress first. */
  holders: Set<MemoryHolder>;
  add: (bytes: number) => void;
  free: (bytes: number) => void;
}

/** Creates the body receiver. It has no timeout, because that of the server for a whole request applies. */
export function createWithBody(budget: MemoryBudget, maxBodyBytes: number): WithBody {
  return async function withBody(req, work, codes) {
    if (Number(req.headers['content-length'] ?? 0) > maxBodyBytes) throw tooLarge(maxBodyBytes);
    const body = await receiveBody(req, budget, maxBodyBytes);
    let usedBytes = body.length;
    const onPiece = (size: number, pieceBytes: number): void => {
      usedBytes += pieceBytes;
      budget.add(pieceBytes);
      if (size > maxBodyBytes) throw tooLarge(maxBodyBytes);
    };
    try {
      const { 'content-encoding': encoding } = req.headers;
      if (codes === undefined || encoding === undefined) return await work(body);
      return await work(await decompress(body, { encoding, codes, holders: budget.holders, onPiece }));
    } finally {
      budget.free(usedBytes);
    }
  };
}

/** Above the limit, the oldest holder without progress frees memory first: honest clients upload fast, read steadily. */
export function createMemoryBudget(maxTotalBytes: number): MemoryBudget {
  const holders = new Set<MemoryHolder>();
  let usedBytes = 0;
  return {
    holders,
    add(bytes) {
      usedBytes += bytes;
      // A holder with progress moves to the end, and gives up its memory only if the others do not free enough.
      for (const oldest of holders) {
        if (usedBytes <= maxTotalBytes) return;
        holders.delete(oldest);
        if (oldest.hasMoved?.() === true) holders.add(oldest);
        else oldest.giveWay();
      }
    },
    free(bytes) {
      usedBytes -= bytes;
    },
  };
}

/** Creates the error for an upload that must release its memory. */
export const tooManyBodies = (): ServiceError =>
  new ServiceError('OVERLOADED', { detail: 'too many request bodies at the same time', retryAfterMs: 1000 });

function receiveBody(req: IncomingMessage, budget: MemoryBudget, maxBodyBytes: number): Promise<Buffer> {
  // The client may have disconnected; a destroyed request emits no more events.
  if (req.destroyed) return Promise.reject(aborted());
  let bytes: Buffer = Buffer.alloc(0);
  let size = 0;
  const awaitTurn = createReadTurns(req.socket, req);
  return new Promise((resolve, reject) => {
    const stopReceiving = (): void => {
      budget.holders.delete(upload);
      req.off('data', onData).off('end', onEnd).off('close', onClose);
    };
    const refuseUpload = (failure: ServiceError): void => {
      stopReceiving();
      budget.free(size);
      // Drains the rest, so that it is not parsed as the next request.
      req.resume();
      reject(failure);
    };
    const onData = (chunk: Buffer): void => {
      bytes = size === 0 ? chunk : appendChunk(bytes, size, chunk);
      size += chunk.length;
      budget.add(chunk.length);
      awaitTurn();
      if (size > maxBodyBytes && budget.holders.has(upload)) refuseUpload(tooLarge(maxBodyBytes));
    };
    const onEnd = (): void => {
      stopReceiving();
      resolve(bytes.subarray(0, size));
    };
    const onClose = (): void => refuseUpload(aborted());
    const upload: MemoryHolder = { giveWay: () => refuseUpload(tooManyBodies()) };
    budget.holders.add(upload);
    req.on('data', onData).once('end', onEnd).once('close', onClose);
    req.on('error', () => undefined);
  });
}

const aborted = (): ServiceError =>
  new ServiceError('BAD_REQUEST', { detail: 'the request body was aborted' });

const tooLarge = (maxBodyBytes: number): ServiceError =>
  new ServiceError('BODY_TOO_LARGE', { detail: `at most ${maxBodyBytes} bytes are accepted` });

/** Parses UTF-8 JSON within limits. `tooLong`: error for an overlong list. @throws ServiceError with one of the codes */
export function parseJsonBytes(
  bytes: Buffer,
  limits: JsonLimits,
  { invalid, tooLong = invalid }: { invalid: ErrorKind; tooLong?: ErrorKind },
): unknown {
  try {
    return parseWithin(limits, new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    if (!(cause instanceof JsonLimitError))
      throw new ServiceError(invalid, { detail: `not valid UTF-8 JSON (${errorText(cause)})`, cause });
    throw new ServiceError(cause.isLongList ? tooLong : invalid, { detail: cause.message });
  }
}

interface EncodedBody {
  encoding: string;
  codes: BodyCodes;
  holders: MemoryBudget['holders'];
  /** Called with the length so far and that of each piece. @throws ServiceError BODY_TOO_LARGE */
  onPiece: (size: number, pieceBytes: number) => void;
}

/** Decompresses gzip, deflate or br in the budget. @throws ServiceError BODY_TOO_LARGE, OVERLOADED or one of `codes` */
async function decompress(body: Buffer, { encoding, codes, holders, onPiece }: EncodedBody): Promise<Buffer> {
  const name = encoding.trim().toLowerCase();
  if (name === 'identity') return body;
  if (!isCoding(name))
    throw new ServiceError(codes.encoding, {
      detail: `unknown Content-Encoding ${JSON.stringify(encoding)}`,
    });
  const decompressor = createDecompressor(name);
  const holder: MemoryHolder = { giveWay: () => void decompressor.destroy(tooManyBodies()) };
  holders.add(holder);
  try {
    return await decompressBody(body, decompressor, onPiece);
  } catch (cause) {
    if (cause instanceof ServiceError) throw cause;
    throw new ServiceError(codes.invalid, { detail: `not valid ${name}`, cause });
  } finally {
    holders.delete(holder);
  }
}

/** Ends a list or object at its first issue, as zod's `validate`, which returns none; each further one takes 4 µs. */
export const FIRST_ISSUE: z.core.ParseContextInternal<z.core.$ZodIssue> = { abortEarly: true };
