// Random changes to bytes, reproducible by seed.
import type { Random } from '../support/random.js';

export const below = (random: Random, limit: number): number => Math.floor(random() * limit);

export function pick<T>(random: Random, choices: readonly T[]): T {
  return choices[below(random, choices.length)] as T;
}

/** Fragments that have broken parsers before. */
const PIECES = [
  ...[
    '\r\n',
    '\n',
    '\r',
    '\r\n\r\n',
    '\n\n',
    '\0',
    ' ',
    '\t',
    '\r\n ',
    ':',
    ';',
    ',',
    '%',
    '%00',
    '%2f',
    '%2e',
  ],
  ...['../', '//', '?', '#', '\\', '@', '{"__proto__":{}}', '[[[[', '\u00ff', '\u0080', '-1', '0x1', '1e9'],
  ...[
    '99999999999999999999',
    'Transfer-Encoding: chunked\r\n',
    'Content-Length: 5\r\n',
    'HTTP/1.1',
    'HTTP/9.9',
  ],
  ...[
    'Host: a\r\n',
    'Expect: 100-continue\r\n',
    'Connection: close\r\n',
    'Upgrade: h2c\r\n',
    'http://evil.example',
  ],
];

/** Returns a copy with some bytes changed, inserted, removed, duplicated or reversed. */
export function mutate(random: Random, bytes: Buffer, most: number): Buffer {
  let changed = bytes;
  const changes = 1 + below(random, most);
  for (let count = 0; count < changes; count++) changed = mutateOnce(random, changed);
  return changed;
}

function mutateOnce(random: Random, bytes: Buffer): Buffer {
  const at = below(random, bytes.length + 1);
  const end = Math.min(bytes.length, at + 1 + below(random, 12));
  const [before, part, after] = [bytes.subarray(0, at), bytes.subarray(at, end), bytes.subarray(end)];
  switch (below(random, 6)) {
    case 0:
      return Buffer.concat([before, Buffer.from([below(random, 256)]), bytes.subarray(at + 1)]);
    case 1:
      return Buffer.concat([before, after]);
    case 2:
      return Buffer.concat([before, part, part, after]);
    case 3:
      return Buffer.concat([before, Buffer.from(part).reverse(), after]);
    case 4:
      return Buffer.concat([before, Buffer.from(part).map((byte) => byte ^ (1 << below(random, 8))), after]);
    default:
      return Buffer.concat([before, Buffer.from(pick(random, PIECES), 'latin1'), bytes.subarray(at)]);
  }
}

/** Splits bytes into pieces, as a network may deliver them. */
export function breakUp(random: Random, bytes: Buffer): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const length = 1 + below(random, random() < 0.2 ? 3 : bytes.length);
    pieces.push(bytes.subarray(at, at + length));
    at += length;
  }
  return pieces;
}
