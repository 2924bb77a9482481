import { fc } from '../support/property.js';
import { describe, expect, it } from 'vitest';
import {
  AnswerLimit,
  createProvedSenders,
  floodedNetworkOf,
  type LimitVerdict,
  Reassembly,
} from '../../src/plugins/native/udp.js';
import { networkOf } from '../../src/http/client-address.js';
import { type Envelope, ENVELOPE_BYTES, OWN_VERSION } from '../../src/plugins/native/codec.js';

/** Checks the limit for a request and counts its response. */
function ask(limit: AnswerLimit, address: string, now: number): LimitVerdict {
  const network = floodedNetworkOf(networkOf(address));
  const verdict = limit.judge(network, now);
  if (verdict === 'answer') limit.count(network, 100);
  return verdict;
}

describe('UDP response limit', () => {
  it('counts bytes per network and second', () => {
    const limit = new AnswerLimit(150);
    expect(['192.0.2.1', '192.0.2.9'].map((address) => ask(limit, address, 0))).toEqual(['answer', 'answer']);
    expect(ask(limit, '198.51.100.1', 0)).toBe('answer');
    const above = ['192.0.2.1', '192.0.2.2', '192.0.2.3'].map((address) => ask(limit, address, 999));
    expect(above).toEqual(['slip', 'drop', 'slip']);
    expect(ask(limit, '192.0.2.1', 1000)).toBe('answer');
  });

  it('is disabled by a limit of 0', () => {
    const limit = new AnswerLimit(0);
    expect(Array.from({ length: 100 }, () => ask(limit, '192.0.2.1', 0))).not.toContain('drop');
  });

  it('shares one count among networks beyond the first 65,536 per second', () => {
    const limit = new AnswerLimit(1);
    for (let at = 0; at < 65_536; at++) ask(limit, `10.${at >> 8}.${at & 255}.1`, 0);
    ask(limit, '192.0.2.1', 0);
    expect(ask(limit, '198.51.100.1', 0)).not.toBe('answer');
    expect(ask(limit, '10.0.0.2', 0)).not.toBe('answer');
  });

  it('keeps the counts of the first networks apart when others share one', () => {
    const limit = new AnswerLimit(150);
    for (let at = 0; at < 65_535; at++) ask(limit, `10.${at >> 8}.${at & 255}.1`, 0);
    expect([ask(limit, '192.0.2.1', 0), ask(limit, '192.0.2.1', 0)]).toEqual(['answer', 'answer']);
    expect(ask(limit, '192.0.2.1', 0)).not.toBe('answer');
    expect(ask(limit, '10.0.0.2', 0)).toBe('answer');
  });
});

describe('UDP reassembly buffer', () => {
  const LENGTH = 262_144;
  const packet = (requestId: number, sequence: number): [Envelope, Buffer] => [
    {
      version: OWN_VERSION,
      suggested: OWN_VERSION,
      isCompressed: false,
      isEncrypted: false,
      isTruncated: true,
      sessionId: 0,
      requestId,
      sequence,
      length: LENGTH,
    },
    Buffer.alloc(ENVELOPE_BYTES + 492),
  ];

  /** Whether a result has this message; `toEqual` would compare a byte at a time. */
  const has = (message: Buffer) => (result: unknown) =>
    message.equals((result as { message: Uint8Array }).message);

  it('accepts the largest request', () => {
    const reassembly = new Reassembly();
    const count = Math.ceil(LENGTH / 492);
    const results = Array.from({ length: count }, (_, at) => reassembly.add('a', ...packet(1, at), 0));
    expect(results.slice(0, -1).every((result) => result === 'incomplete')).toBe(true);
    expect(results.at(-1)).toSatisfy(has(Buffer.alloc(LENGTH)));
  });

  it('reassembles fragments in any order despite duplicates', () => {
    fc.assert(
      fc.property(fc.integer({ min: 493, max: 6000 }), fc.infiniteStream(fc.nat()), (length, numbers) => {
        const message = Buffer.from(Array.from({ length }, (_, at) => at % 251));
        const count = Math.ceil(length / 492);
        const reassembly = new Reassembly();
        const twice = [...Array(2 * count).keys()].map((at) => at % count);
        const results = shuffled(twice, numbers).map((sequence) => {
          const part = message.subarray(sequence * 492, (sequence + 1) * 492);
          const bytes = Buffer.concat([Buffer.alloc(ENVELOPE_BYTES), part]);
          return reassembly.add('a', { ...packet(1, sequence)[0], length }, bytes, 0);
        });
        const [whole] = results.filter((result) => result !== 'incomplete');
        expect(whole).toSatisfy(has(message));
      }),
    );
  });

  it('evicts the oldest request beyond 4 MiB', () => {
    const reassembly = new Reassembly();
    const [envelope, bytes] = packet(1, 0);
    const short = { ...envelope, length: 500 };
    reassembly.add('a', short, bytes, 0);
    for (let id = 2; id < 7000; id++) reassembly.add('a', ...packet(id, 0), 0);
    const rest = reassembly.add('a', { ...short, sequence: 1 }, Buffer.alloc(ENVELOPE_BYTES + 8), 0);
    expect(rest).toBe('incomplete');
  });

  it('copies a fragment, which would hold its whole datagram', () => {
    const reassembly = new Reassembly();
    const envelope = { ...packet(1, 0)[0], length: 500 };
    const datagram = Buffer.alloc(65_507, 'x');
    reassembly.add('a', envelope, datagram, 0);
    datagram.fill('y');
    const whole = reassembly.add('a', { ...envelope, sequence: 1 }, Buffer.alloc(ENVELOPE_BYTES + 8, 'x'), 0);
    expect(whole).toSatisfy(has(Buffer.alloc(500, 'x')));
  });

  it('rejects a fragment with an invalid offset or size', () => {
    const reassembly = new Reassembly();
    const [envelope, bytes] = packet(1, 0);
    expect(reassembly.add('a', { ...envelope, sequence: -1 }, bytes, 0)).toBe('invalid');
    expect(reassembly.add('a', { ...envelope, sequence: 533 }, bytes, 0)).toBe('invalid');
    expect(reassembly.add('a', envelope, bytes.subarray(0, 400), 0)).toBe('invalid');
  });
});

describe('senders proved over TCP', () => {
  it('are known for an hour after their last message', () => {
    let now = 1_000_000;
    const proved = createProvedSenders(() => now);
    proved.add('::ffff:192.0.2.1');
    now += 3_599_000;
    proved.add('192.0.2.2');
    expect(['192.0.2.1', '192.0.2.2', '192.0.2.3'].map(proved.has)).toEqual([true, true, false]);
    now += 2000;
    expect(['192.0.2.1', '192.0.2.2'].map(proved.has)).toEqual([false, true]);
  });
});

function shuffled<T>(list: readonly T[], numbers: fc.Stream<number>): T[] {
  const rest = [...list];
  return list.map(() => rest.splice(numbers.next().value % rest.length, 1)[0]!);
}
