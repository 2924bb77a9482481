// Recorded native messages with changed bytes, and with lengths that have broken parsers before.
import { assembled, native } from '../support/native-recordings.js';
import { type Random } from '../support/random.js';
import { below, mutate, pick } from './mutate.js';

export const REQUESTS = native.exchanges.flatMap(({ request }) => assembled(request) ?? []);
export const RESPONSES = native.exchanges.flatMap(({ response }) => assembled(response) ?? []);

const LENGTHS = [
  -1,
  -(2 ** 31),
  2 ** 31 - 1,
  1_048_576,
  1_048_577,
  262_144,
  262_145,
  65_536,
  1024,
  493,
  492,
  0,
];

/** Returns a copy with some lengths or counts overwritten, or some bytes changed. */
export function mutateMessage(random: Random, message: Buffer): Buffer {
  const changed = random() < 0.5 ? mutate(random, message, 3) : Buffer.from(message);
  if (changed.length < 4 || random() < 0.3) return changed;
  changed.writeInt32BE(pick(random, LENGTHS), below(random, changed.length - 3));
  return changed;
}
