// Prepared native responses are identical to uncached ones for random requests and records.
import { fc } from '../support/property.js';
import { describe, expect, test } from 'vitest';
import type { HandleValue } from '../../src/handle/value.js';
import {
  ENVELOPE_BYTES,
  decodeEnvelope,
  OP_FLAG,
  encodeMessage,
  frame,
  toPackets,
} from '../../src/plugins/native/codec.js';
import type { Transport } from '../../src/plugins/native/reply.js';
import { int32, serverValues, texts } from '../support/native-arbitraries.js';
import { PUBLIC } from '../support/native-messages.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { mockUpstream, notFound, recordOf } from '../support/upstream.js';
import { encodeResolution } from '../../src/cli/native-client.js';
import { rounds } from '../support/property-rounds.js';

useNock();

const flag = fc.constantFrom(
  0,
  0,
  0,
  0,
  OP_FLAG.recursive,
  OP_FLAG.encrypt,
  OP_FLAG.doNotRefer,
  OP_FLAG.returnDigest,
  OP_FLAG.publicOnly,
);
const versions = fc.record({ major: fc.constantFrom(2, 2, 5), minor: fc.constantFrom(0, 1, 6, 7, 11) });

/** Generates fields that may differ between requests with the same prepared response. */
const volatile = fc.record({ requestId: int32, siteSerial: fc.nat(0xffff), expiration: int32 });
const questions = fc.record({
  suffix: fc.constantFrom('a', 'b', 'B', 'gone'),
  indexes: fc.array(fc.constantFrom(1, 2, 3, 100), { maxLength: 2 }),
  types: fc.array(fc.oneof(fc.constantFrom('URL', 'URL.', '.'), texts), { maxLength: 2 }),
  flags: fc.tuple(flag, flag).map(([one, other]) => PUBLIC ^ one ^ other),
  recursionCount: fc.nat(3),
  version: versions,
  suggested: versions,
  opCode: fc.constantFrom(1, 1, 1, 1, 2, 7),
  sessionId: fc.constantFrom(0, 0, 0, -1, 9),
  tail: fc.constantFrom('', '', '', 'more'),
  transport: fc.constantFrom<Exclude<Transport, 'tunnel'>>('tcp', 'udp'),
});

type Asked = typeof questions extends fc.Arbitrary<infer T> ? T : never;
type Volatile = typeof volatile extends fc.Arbitrary<infer T> ? T : never;

function requestOf(asked: Asked, { requestId, siteSerial, expiration }: Volatile): Buffer {
  const { suffix, indexes, types, flags, recursionCount, version, suggested, opCode, sessionId } = asked;
  const header = { opCode, responseCode: 0, flags, siteSerial, recursionCount, expiration };
  const body = encodeResolution({ handle: Buffer.from(`21.T1/${suffix}`), indexes, types });
  const message = encodeMessage({ header, body, credential: Buffer.alloc(0) });
  const bits = { isCompressed: false, isEncrypted: false, isTruncated: false, sequence: 0 };
  const request = frame({ version, suggested, ...bits, sessionId, requestId }, message);
  return Buffer.concat([request, Buffer.from(asked.tail)]);
}

const handleIn = (target: string): string =>
  decodeURIComponent(target.slice('/api/handles/'.length).split('?')[0] ?? '');

describe('prepared native response', () => {
  test('has the same bytes as an uncached response', async () => {
    let values: HandleValue[] = [];
    const upstream = mockUpstream();
    upstream.answers((target) =>
      target.includes('gone') ? notFound(handleIn(target)) : recordOf(values, handleIn(target)),
    );
    const { app, pass } = await startProxy({ CACHE_FOUND_MIN_TTL: '1h', NATIVE_SITE_ADDRESS: '192.0.2.1' });
    const { native, operations } = app;
    let compared = 0;

    async function anew(request: Buffer, transport: Transport): Promise<Buffer> {
      const envelope = decodeEnvelope(request);
      const message = request.subarray(ENVELOPE_BYTES, ENVELOPE_BYTES + envelope.length);
      const { reply } = await native.answer({ envelope, message, transport });
      if (transport === 'udp') return Buffer.concat(toPackets(reply.envelope, reply.message));
      return frame(reply.envelope, reply.message);
    }

    await fc.assert(
      fc.asyncProperty(
        fc.array(serverValues, { maxLength: 6 }),
        fc.array(fc.tuple(questions, volatile, volatile), { minLength: 4, maxLength: 10 }),
        async (record, asked) => {
          values = record.map((value) => ({ ...value, ttl: 86_400 }));
          await operations.purge({ prefix: '', isSoft: false });
          for (const [question, first, second] of asked) {
            const { transport } = question;
            const [before, after] = [requestOf(question, first), requestOf(question, second)];
            await anew(before, transport);
            const envelope = decodeEnvelope(before);
            const message = before.subarray(ENVELOPE_BYTES, ENVELOPE_BYTES + envelope.length);
            await native.answer({ envelope, message, transport, received: before });
            pass(1000);
            const prepared = native.answerPrepared(after, transport);
            if (prepared === undefined) continue;
            expect(prepared.toString('hex')).toBe((await anew(after, transport)).toString('hex'));
            compared++;
          }
        },
      ),
      { numRuns: rounds(150) },
    );
    expect(compared).toBeGreaterThan(rounds(150));
  });
});
