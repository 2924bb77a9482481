// Marks that identify the connection and the request from which a text originates.
import { createHash } from 'node:crypto';

/** Returns a mark with a checksum, so that no mutation creates a different valid mark. */
export function markOf(kind: 'm' | 'i', { connection, at }: { connection: number; at: number }): string {
  const name = `${kind}${connection}x${at}`;
  return `${name}c${checksumOf(name)}`;
}

const checksumOf = (name: string): string => createHash('sha256').update(name).digest('hex').slice(0, 8);

export interface Mark {
  text: string;
  connection: number;
  isInside: boolean;
}

/** Returns the valid marks in a text. */
export function marksIn(text: string): Mark[] {
  return [...text.matchAll(/([mi](\d+)x\d+)c([0-9a-f]{8})/g)].flatMap(
    ([found, name = '', connection, checksum]) =>
      checksumOf(name) === checksum
        ? [{ text: found, connection: Number(connection), isInside: name.startsWith('i') }]
        : [],
  );
}
