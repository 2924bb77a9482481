// Receives request bodies within a limit per body and a total limit, decompresses them and parses JSON.
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import { type ErrorCode, ServiceError } from '../errors.js';
import { parseJson } from '../handle/json.js';

interface RequestBodyDeps {
  maxBodyBytes: number;
  budget: MemoryBudget;
}

/**
 * Receives the body and passes it to `work`; its bytes count towards the budget until `work` ends.
 *
 * @throws ServiceError BODY_TOO_LARGE, OVERLOADED, or BAD_REQUEST for an incomplete body
 */
export type WithBody = <T>(req: IncomingMessage, work: (body: Buffer) => Promise<T>) => Promise<T>;

/** Retry-After for a body rejected for lack of memory. */
const RETRY_AFTER_MS = 1000;

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

/** Creates the body receiver. It has no timeout, because `server.requestTimeout` applies. */
export function createWithBody({ maxBodyBytes, budget }: RequestBodyDeps): WithBody {
  return async function withBody(req, work) {
    if (Number(req.headers['content-length'] ?? 0) > maxBodyBytes) throw tooLarge(maxBodyBytes);
    const body = await receive(req, budget, maxBodyBytes);
    try {
      return await work(body);
    } finally {
      budget.free(body.length);
    }
  };
}

/**
 * Creates a budget. Above the limit, the oldest holder without progress releases its memory first, because
 * honest clients finish uploads quickly and read steadily.
 */
export function createMemoryBudget(maxTotalBytes: number): MemoryBudget {
  const holders = new Set<MemoryHolder>();
  let usedBytes = 0;
  return {
    holders,
    add(bytes) {
      usedBytes += bytes;
      // A holder that has made progress moves to the end, and gives up its memory only if the others do not
      // free enough.
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
  new ServiceError('OVERLOADED', {
    detail: 'too many request bodies at the same time',
    retryAfterMs: RETRY_AFTER_MS,
  });

function receive(req: IncomingMessage, budget: MemoryBudget, maxBodyBytes: number): Promise<Buffer> {
  // The client may have disconnected; a destroyed request emits no more events.
  if (req.destroyed) return Promise.reject(aborted());
  let bytes: Buffer = Buffer.alloc(0);
  let size = 0;
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      budget.holders.delete(upload);
      req.off('data', onData).off('end', onEnd).off('close', onClose);
    };
    const refuse = (failure: ServiceError): void => {
      stop();
      budget.free(size);
      // Drains the rest, so that it is not parsed as the next request.
      req.resume();
      reject(failure);
    };
    const onData = (chunk: Buffer): void => {
      bytes = appendChunk(bytes, size, chunk);
      size += chunk.length;
      budget.add(chunk.length);
      if (size > maxBodyBytes && budget.holders.has(upload)) refuse(tooLarge(maxBodyBytes));
    };
    const onEnd = (): void => {
      stop();
      resolve(bytes.subarray(0, size));
    };
    const onClose = (): void => {
      refuse(aborted());
    };
    const upload: MemoryHolder = {
      giveWay() {
        refuse(tooManyBodies());
      },
    };
    budget.holders.add(upload);
    req.on('data', onData).once('end', onEnd).once('close', onClose);
    req.on('error', () => undefined);
  });
}

/** Appends to a doubling buffer: a list of one-byte chunks would need a hundred times their memory. */
export function appendChunk(bytes: Buffer, size: number, chunk: Buffer): Buffer {
  const needed = size + chunk.length;
  const target = needed <= bytes.length ? bytes : Buffer.alloc(Math.max(needed, 2 * bytes.length));
  if (target !== bytes) bytes.copy(target, 0, 0, size);
  chunk.copy(target, size);
  return target;
}

const aborted = (): ServiceError =>
  new ServiceError('BAD_REQUEST', { detail: 'the request body was aborted' });

const tooLarge = (maxBodyBytes: number): ServiceError =>
  new ServiceError('BODY_TOO_LARGE', { detail: `at most ${maxBodyBytes} bytes are accepted` });

interface BodyOptions {
  /** The request's `Content-Encoding`. */
  encoding: string | undefined;
  /** Maximum size after decompression. */
  maxBodyBytes: number;
  /** The interface's error codes for an unreadable body and for an unknown encoding. */
  codes: { invalid: ErrorCode; encoding: ErrorCode };
}

/** Decompresses a body and parses its JSON. @throws ServiceError BODY_TOO_LARGE, or one of `codes` */
export async function parseJsonBody(body: Buffer, options: BodyOptions): Promise<unknown> {
  return parseJsonBytes(await decompress(body, options), options);
}

/** Parses UTF-8 JSON. @throws ServiceError with `codes.invalid` */
export function parseJsonBytes(bytes: Buffer, { codes }: Pick<BodyOptions, 'codes'>): unknown {
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ServiceError(codes.invalid, { detail: `not valid UTF-8 JSON (${reason})`, cause });
  }
}

const DECOMPRESS = { gzip: promisify(gunzip), deflate: promisify(inflate), br: promisify(brotliDecompress) };

/** Decompresses gzip, deflate or br. @throws ServiceError BODY_TOO_LARGE, or one of `codes` */
export async function decompress(body: Buffer, options: BodyOptions): Promise<Buffer> {
  const { encoding = 'identity', maxBodyBytes, codes } = options;
  const name = encoding.trim().toLowerCase();
  if (name === 'identity') return body;
  if (!Object.hasOwn(DECOMPRESS, name)) {
    throw new ServiceError(codes.encoding, {
      detail: `unknown Content-Encoding ${JSON.stringify(encoding)}`,
    });
  }
  try {
    return await DECOMPRESS[name as keyof typeof DECOMPRESS](body, { maxOutputLength: maxBodyBytes });
  } catch (cause) {
    if ((cause as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(maxBodyBytes);
    throw new ServiceError(codes.invalid, { detail: `not valid ${name}`, cause });
  }
}
