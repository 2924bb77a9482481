// Receives request bodies within a limit per body and a limit for all, decompresses them and parses JSON.
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import { type ErrorCode, ServiceError } from '../errors.js';

interface RequestBodyDeps {
  maxBodyBytes: number;
  budget: MemoryBudget;
}

/**
 * Receives the body and passes it to `work`; its bytes count against the budget until the work is done.
 *
 * @throws ServiceError BODY_TOO_LARGE, OVERLOADED, or BAD_REQUEST when the body is incomplete
 */
export type WithBody = <T>(req: IncomingMessage, work: (body: Buffer) => Promise<T>) => Promise<T>;

/** `Retry-After` of a body rejected for lack of memory. */
const RETRY_AFTER_MS = 1000;

/** A holder of memory, such as an upload, which may have to give it up. */
interface MemoryHolder {
  /** Whether the holder has made progress since the previous call; if so, the others give way first. */
  hasMoved?: () => boolean;
  giveWay: () => void;
}

/** A budget for memory held for clients, with its holders. */
export interface MemoryBudget {
  /** Holders that can give way; the longest without progress first. */
  holders: Set<MemoryHolder>;
  add: (bytes: number) => void;
  free: (bytes: number) => void;
}

/** Receives bodies without a timeout: `server.requestTimeout` limits the time. */
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
 * Above the limit the oldest holder without progress gives way: honest clients finish uploads quickly, and keep reading.
 */
export function createMemoryBudget(maxTotalBytes: number): MemoryBudget {
  const holders = new Set<MemoryHolder>();
  let usedBytes = 0;
  return {
    holders,
    add(bytes) {
      usedBytes += bytes;
      // A holder with progress is moved to the end of the iteration, and gives way only if the others do not suffice.
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

/** The error of an upload that has to give way. */
export const tooManyBodies = (): ServiceError =>
  new ServiceError('OVERLOADED', {
    detail: 'too many bodies are on their way',
    retryAfterMs: RETRY_AFTER_MS,
  });

function receive(req: IncomingMessage, budget: MemoryBudget, maxBodyBytes: number): Promise<Buffer> {
  // The client may have disconnected earlier; a destroyed request emits no more events.
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
      // The rest is drained, so that it is not parsed as the next request.
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

/** Appends to a buffer that doubles: a list of one-byte chunks would take a hundred times their memory. */
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
  /** `Content-Encoding` of the request. */
  encoding: string | undefined;
  /** Maximum size after decompression. */
  maxBodyBytes: number;
  /** Error codes of the interface: for a body that cannot be read, and for an unknown encoding. */
  codes: { invalid: ErrorCode; encoding: ErrorCode };
}

/** Decompresses a body and parses its JSON. @throws ServiceError BODY_TOO_LARGE, or one of the codes */
export async function parseJsonBody(body: Buffer, options: BodyOptions): Promise<unknown> {
  return parseJsonBytes(await decompress(body, options), options);
}

/** @throws ServiceError with `codes.invalid` */
export function parseJsonBytes(bytes: Buffer, { codes }: Pick<BodyOptions, 'codes'>): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ServiceError(codes.invalid, { detail: `not valid UTF-8 JSON (${reason})`, cause });
  }
}

const DECOMPRESS = { gzip: promisify(gunzip), deflate: promisify(inflate), br: promisify(brotliDecompress) };

/** Decompresses gzip, deflate or br. @throws ServiceError BODY_TOO_LARGE, or one of the codes */
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
