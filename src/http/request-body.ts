// Receives request bodies within a limit per body and a total limit, decompresses them and parses JSON within limits.
import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { type ErrorKind, ServiceError, errorText } from '../errors.js';
import { appendChunk } from '../handle/bytes.js';
import { endOfString } from '../handle/json.js';
import { createDecompressor, decompressBody, isCoding } from '../handle/streams.js';

/**
 * Receives the body and passes it to `work`; its bytes, and those that `work` adds to `memory`, count towards
 * the budget until `work` ends.
 *
 * @throws ServiceError BODY_TOO_LARGE, OVERLOADED, or BAD_REQUEST for an incomplete body
 */
export type WithBody = <T>(
  req: IncomingMessage,
  work: (body: Buffer, memory: BodyMemory) => Promise<T>,
) => Promise<T>;

/** Retry-After for a body rejected for lack of memory. */
const RETRY_AFTER_MS = 1000;

/** A memory holder, such as an upload, that can release its memory. */
interface MemoryHolder {
  /** Whether the holder has progressed since the previous call; if so, other holders release memory first. */
  hasMoved?: () => boolean;
  giveWay: () => void;
}

/** The part of a budget that one request uses. */
interface BodyMemory {
  /** Holders that can release memory, the longest without progress first. */
  holders: Set<MemoryHolder>;
  add: (bytes: number) => void;
}

/** Budget for memory held on behalf of clients, with its holders. */
export interface MemoryBudget extends BodyMemory {
  free: (bytes: number) => void;
}

/** Creates the body receiver. It has no timeout, because that of the server for a whole request applies. */
export function createWithBody(budget: MemoryBudget, maxBodyBytes: number): WithBody {
  return async function withBody(req, work) {
    if (Number(req.headers['content-length'] ?? 0) > maxBodyBytes) throw tooLarge(maxBodyBytes);
    const body = await receiveBody(req, budget, maxBodyBytes);
    let usedBytes = body.length;
    const memory: BodyMemory = {
      holders: budget.holders,
      add(bytes) {
        usedBytes += bytes;
        budget.add(bytes);
      },
    };
    try {
      return await work(body, memory);
    } finally {
      budget.free(usedBytes);
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

function receiveBody(req: IncomingMessage, budget: MemoryBudget, maxBodyBytes: number): Promise<Buffer> {
  // The client may have disconnected; a destroyed request emits no more events.
  if (req.destroyed) return Promise.reject(aborted());
  let bytes: Buffer = Buffer.alloc(0);
  let size = 0;
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
      bytes = appendChunk(bytes, size, chunk);
      size += chunk.length;
      budget.add(chunk.length);
      if (size > maxBodyBytes && budget.holders.has(upload)) refuseUpload(tooLarge(maxBodyBytes));
    };
    const onEnd = (): void => {
      stopReceiving();
      resolve(bytes.subarray(0, size));
    };
    const onClose = (): void => {
      refuseUpload(aborted());
    };
    const upload: MemoryHolder = {
      giveWay() {
        refuseUpload(tooManyBodies());
      },
    };
    budget.holders.add(upload);
    req.on('data', onData).once('end', onEnd).once('close', onClose);
    req.on('error', () => undefined);
  });
}

const aborted = (): ServiceError =>
  new ServiceError('BAD_REQUEST', { detail: 'the request body was aborted' });

const tooLarge = (maxBodyBytes: number): ServiceError =>
  new ServiceError('BODY_TOO_LARGE', { detail: `at most ${maxBodyBytes} bytes are accepted` });

/** The bound and the errors of an interface for encoded bodies. */
interface EncodedBody {
  /** Maximum size after decompression. */
  maxBodyBytes: number;
  /** The interface's errors for an unreadable body and for an unknown encoding. */
  codes: { invalid: ErrorKind; encoding: ErrorKind };
}

/** The bounds and the errors of an interface for JSON bodies. */
interface JsonBody extends EncodedBody {
  limits: JsonLimits;
  /** `tooLong`: for a list with too many elements (default: `invalid`). */
  codes: EncodedBody['codes'] & { tooLong?: ErrorKind };
}

/** Decompresses a body and parses its JSON. @throws ServiceError BODY_TOO_LARGE, OVERLOADED, or one of `codes` */
export async function parseJsonBody(
  req: IncomingMessage,
  body: Buffer,
  memory: BodyMemory,
  rules: JsonBody,
): Promise<unknown> {
  return parseJsonBytes(await decompress(req, body, memory, rules), rules);
}

/** Parses UTF-8 JSON within limits. @throws ServiceError with one of `codes` */
export function parseJsonBytes(bytes: Buffer, { codes, limits }: JsonBody): unknown {
  try {
    const json = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    const excess = findExcess(json, limits);
    if (excess === undefined) return JSON.parse(json);
    const { invalid, tooLong = invalid } = codes;
    throw new ServiceError(excess.kind === 'elements' ? tooLong : invalid, {
      detail: describeExcess(excess),
    });
  } catch (cause) {
    if (cause instanceof ServiceError) throw cause;
    const reason = errorText(cause);
    throw new ServiceError(codes.invalid, { detail: `not valid UTF-8 JSON (${reason})`, cause });
  }
}

/**
 * Decompresses gzip, deflate or br, unless the result exceeds the memory budget.
 *
 * @throws ServiceError BODY_TOO_LARGE, OVERLOADED, or one of `codes`
 */
export async function decompress(
  { headers }: IncomingMessage,
  body: Buffer,
  memory: BodyMemory,
  { maxBodyBytes, codes }: EncodedBody,
): Promise<Buffer> {
  const encoding = headers['content-encoding'] ?? 'identity';
  const name = encoding.trim().toLowerCase();
  if (name === 'identity') return body;
  if (!isCoding(name)) {
    throw new ServiceError(codes.encoding, {
      detail: `unknown Content-Encoding ${JSON.stringify(encoding)}`,
    });
  }
  const decompressor = createDecompressor(name);
  const holder: MemoryHolder = { giveWay: () => void decompressor.destroy(tooManyBodies()) };
  memory.holders.add(holder);
  try {
    return await decompressBody(body, decompressor, (size, pieceBytes) => {
      memory.add(pieceBytes);
      if (size > maxBodyBytes) throw tooLarge(maxBodyBytes);
    });
  } catch (cause) {
    if (cause instanceof ServiceError) throw cause;
    throw new ServiceError(codes.invalid, { detail: `not valid ${name}`, cause });
  } finally {
    memory.holders.delete(holder);
  }
}

/** The limits of an interface. */
export interface JsonLimits {
  /** Maximum elements of a list. */
  elements: number;
  /** Maximum commas and opening brackets, of which each has one value. */
  values: number;
}

/** Maximum members of an object; the objects of the interfaces have up to fourteen. */
const MAX_MEMBERS = 64;
/** Maximum nesting depth; bodies of the interfaces have up to four levels. */
const MAX_LEVELS = 32;

/** The limit that a text exceeds. */
interface Excess {
  kind: 'elements' | 'members' | 'levels' | 'values';
  max: number;
}

// Character codes, because comparing characters as texts takes forty times as long.
const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

interface Container {
  kind: 'elements' | 'members';
  max: number;
  /** Elements or members so far. */
  size: number;
}

/**
 * Returns the first limit that JSON exceeds. It reads no further: a megabyte of `{},` takes 60 ms to parse, and
 * seconds to validate. The text may be invalid JSON.
 */
export function findExcess(json: string, limits: JsonLimits): Excess | undefined {
  const open: Container[] = [];
  let values = 0;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfString(json, at) - 1;
    else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) open.pop();
    else if (code === COMMA || code === OPEN_BRACKET || code === OPEN_BRACE) {
      const excess = countValue(open, code, limits);
      if (excess !== undefined) return excess;
      if (++values > limits.values) return { kind: 'values', max: limits.values };
    }
  }
  return undefined;
}

/** Counts the value after a comma, or the first of a new list or object. */
function countValue(open: Container[], code: number, { elements }: JsonLimits): Excess | undefined {
  if (code === COMMA) {
    const container = open.at(-1);
    if (container === undefined || ++container.size <= container.max) return undefined;
    return { kind: container.kind, max: container.max };
  }
  if (open.length === MAX_LEVELS) return { kind: 'levels', max: MAX_LEVELS };
  open.push(
    code === OPEN_BRACKET
      ? { kind: 'elements', max: elements, size: 1 }
      : { kind: 'members', max: MAX_MEMBERS, size: 1 },
  );
  return undefined;
}

const WORDS: Readonly<Record<Excess['kind'], (max: number) => string>> = {
  elements: (max) => `a list has more than ${max} elements`,
  members: (max) => `an object has more than ${max} members`,
  levels: (max) => `it is nested deeper than ${max} levels`,
  values: (max) => `it has more than ${max} values`,
};

export const describeExcess = ({ kind, max }: Excess): string => WORDS[kind](max);

/** Ends a list or an object at its first issue, as in zod's `validate`, which returns no issue. */
const FIRST_ISSUE: z.core.ParseContextInternal<z.core.$ZodIssue> = { abortEarly: true };

/** Validates with a schema up to the first issue. Collecting one for each element takes 4 µs an element. */
export const parseUpToIssue = <T extends z.ZodType>(
  schema: T,
  given: unknown,
): z.ZodSafeParseResult<z.output<T>> => schema.safeParse(given, FIRST_ISSUE);
