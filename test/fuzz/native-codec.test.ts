// Mutated native messages: the codec decodes or rejects each, and the decoded parts are never longer than
// the message and its padding. `npm run fuzz` decodes a million.
import { describe, expect, test, vi } from 'vitest';
import { decoded, OP_FLAG, readMessage, decodeRequest } from '../../src/plugins/native/codec.js';
import { randomFrom } from '../support/random.js';
import { pick } from './mutate.js';
import { REQUESTS, RESPONSES, mutateMessage } from './native.js';
import { decodeResponse } from '../support/native-decoder.js';

const COUNT = Number(process.env['FUZZ_DATAGRAMS'] ?? 30_000);
const SEED = Number(process.env['FUZZ_SEED'] ?? 1);
vi.setConfig({ testTimeout: 180_000 + COUNT });

/** Size to which shorter messages are padded. */
const PADDED = 1024;

describe('fuzzed native codec', () => {
  test(`decodes or rejects ${COUNT} mutated requests`, () => {
    const random = randomFrom(SEED);
    const found = { good: 0, bad: 0 };
    for (let at = 0; at < COUNT; at++) {
      const message = mutateMessage(random, pick(random, REQUESTS));
      const request = decodeRequest(message, { isPadded: random() < 0.5 });
      found[request.ok ? 'good' : 'bad']++;
      if (!request.ok || request.value.resolution === undefined) continue;
      const { handle, indexes, types } = request.value.resolution;
      const items = 4 * (indexes.length + types.length);
      if (handle.length + items > Math.max(message.length, PADDED))
        throw new Error(`seed ${SEED}, message ${at}`);
    }
    process.stdout.write(`${found.good} of ${COUNT} mutated requests were decoded\n`);
    expect(Math.min(found.good, found.bad)).toBeGreaterThan(COUNT / 10);
  });

  test(`decodes or rejects ${COUNT} mutated responses`, () => {
    const random = randomFrom(SEED);
    const found = { good: 0, bad: 0 };
    for (let at = 0; at < COUNT; at++) {
      const bytes = mutateMessage(random, pick(random, RESPONSES));
      const message = decoded(() => readMessage(bytes));
      const response = message.ok
        ? decodeResponse(message.value, {
            hasDigest: (message.value.header.flags & OP_FLAG.returnDigest) !== 0,
          })
        : message;
      found[response.ok ? 'good' : 'bad']++;
    }
    process.stdout.write(`${found.good} of ${COUNT} mutated responses were decoded\n`);
    expect(Math.min(found.good, found.bad)).toBeGreaterThan(COUNT / 10);
  });
});
