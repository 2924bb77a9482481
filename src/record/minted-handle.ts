// What a server says in its answer to a write: the name it minted, its response code.
import type { IncomingMessage } from 'node:http';
import { ServiceError } from '../errors.js';
import { objectIn, parseJson } from '../handle/json.js';

/** A Handle server answers a write in a few hundred bytes; more than this is not looked into. */
const MAX_ANSWER_BYTES = 1024 * 1024;

/** @throws ServiceError when the answer breaks off or is far too long */
export async function readWhole(answer: IncomingMessage, maxBytes = MAX_ANSWER_BYTES): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > maxBytes) throw new RangeError('the answer is too long');
      chunks.push(chunk);
    }
  } catch (cause) {
    throw new ServiceError('UPSTREAM_BAD_ANSWER', { detail: 'it broke off or is too long', cause });
  }
  return Buffer.concat(chunks);
}

/** The `handle` of an answer; undefined when there is none. */
export function mintedHandle(body: Buffer): string | undefined {
  const { handle } = membersOf(body);
  return typeof handle === 'string' ? handle : undefined;
}

/** The `responseCode` of an answer; undefined when there is none. */
export function responseCodeOf(body: Buffer): number | undefined {
  const { responseCode } = membersOf(body);
  return typeof responseCode === 'number' ? responseCode : undefined;
}

function membersOf(body: Buffer): { handle?: unknown; responseCode?: unknown } {
  try {
    return parseJson(objectIn(body.toString('utf8'))) as { handle?: unknown; responseCode?: unknown };
  } catch {
    return {};
  }
}
