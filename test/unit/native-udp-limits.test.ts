// The bounds of the UDP listener: answers by network and second, memory of incomplete requests.
import { fc } from '@fast-check/vitest';
import { describe, expect, it } from 'vitest';
import { AnswerLimit } from '../../src/native/answer-limit.js';
import { type Envelope, ENVELOPE_BYTES, OWN_VERSION } from '../../src/native/codec/envelope.js';
import { Reassembly } from '../../src/native/reassembly.js';

describe('the limit of answers', () => {
  it('counts each network by itself, from zero in each second', () => {
    const limit = new AnswerLimit(1);
    expect(limit.judge('192.0.2', 0)).toBe('answer');
    expect(limit.judge('198.51.100', 0)).toBe('answer');
    expect(['192.0.2', '192.0.2'].map((network) => limit.judge(network, 999))).toEqual(['slip', 'drop']);
    expect(limit.judge('192.0.2', 1000)).toBe('answer');
  });

  it('is none with 0', () => {
    const limit = new AnswerLimit(0);
    expect(Array.from({ length: 100 }, () => limit.judge('192.0.2', 0))).not.toContain('drop');
  });

  it('counts networks beyond 65,536 in a second together', () => {
    const limit = new AnswerLimit(1);
    for (let at = 0; at < 65_536; at++) limit.judge(String(at), 0);
    expect(limit.judge('new', 0)).toBe('answer');
    expect(limit.judge('newer', 0)).not.toBe('answer');
  });
});

describe('the memory of incomplete requests', () => {
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

  it('has room for the largest request', () => {
    const reassembly = new Reassembly();
    const count = Math.ceil(LENGTH / 492);
    const results = Array.from({ length: count }, (_, at) => reassembly.add('a', ...packet(1, at), 0));
    expect(results.slice(0, -1).every((result) => result === 'incomplete')).toBe(true);
    expect(results.at(-1)).toMatchObject({ message: Buffer.alloc(LENGTH) });
  });

  it('puts packets together in whatever order, each of them twice', () => {
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
        expect(whole).toEqual({ message, requestBytes: length + count * ENVELOPE_BYTES });
      }),
    );
  });

  it('beyond 4 MiB loses the oldest', () => {
    const reassembly = new Reassembly();
    const [envelope, bytes] = packet(1, 0);
    const short = { ...envelope, length: 500 };
    reassembly.add('a', short, bytes, 0);
    for (let id = 2; id < 7000; id++) reassembly.add('a', ...packet(id, 0), 0);
    const rest = reassembly.add('a', { ...short, sequence: 1 }, Buffer.alloc(ENVELOPE_BYTES + 8), 0);
    expect(rest).toBe('incomplete');
  });

  it('takes no packet of a wrong place or size', () => {
    const reassembly = new Reassembly();
    const [envelope, bytes] = packet(1, 0);
    expect(reassembly.add('a', { ...envelope, sequence: -1 }, bytes, 0)).toBe('invalid');
    expect(reassembly.add('a', { ...envelope, sequence: 533 }, bytes, 0)).toBe('invalid');
    expect(reassembly.add('a', envelope, bytes.subarray(0, 400), 0)).toBe('invalid');
  });
});

function shuffled<T>(list: readonly T[], numbers: fc.Stream<number>): T[] {
  const rest = [...list];
  return list.map(() => rest.splice(numbers.next().value % rest.length, 1)[0]!);
}
