// Recorded native messages: decoding and re-encoding reproduces the bytes.
import { describe, expect, it } from 'vitest';
import { RESPONSE_CODE } from '../../src/handle/outcome.js';
import type { HandleValue } from '../../src/handle/value.js';
import {
  isEarlier,
  decodeEnvelope,
  encodeEnvelope,
  ENVELOPE_BYTES,
  type NativeMessage,
  OP_CODE,
  OP_FLAG,
  encodeMessage,
  frame,
  readMessage,
  toPackets,
  decodeRequest,
  encodeBody,
  encodeDigest,
} from '../../src/plugins/native/codec.js';
import { assembled, bytesOf, native } from '../support/native-recordings.js';
import { encodeResolution } from '../../src/cli/native-client.js';
import { decodeResponse } from '../support/native-decoder.js';

/** Returns the names of the items that fail the comparison. */
const differing = <T extends { name: string }>(all: readonly T[], isSame: (one: T) => boolean): string[] =>
  all.filter((one) => !isSame(one)).map(({ name }) => name);

/** Whether a message is deliberately malformed, or an exchange contains two messages. */
const isOdd = ({ name }: { name: string }): boolean =>
  /: bad: |opcode 99|sent as request|handle length|of 400 bytes|request twice|two requests/.test(name);

const requests = native.exchanges.map(({ name, request }) => ({ name, packets: request }));
const responses = native.exchanges.map(({ name, response }) => ({ name, packets: response }));
const everything = [...requests, ...responses, ...native.clients];

interface Whole {
  name: string;
  packets: string[];
  bytes: Buffer;
}

/** Returns the complete, well-formed messages whose length matches their header. */
const whole = (all: readonly Omit<Whole, 'bytes'>[]): Whole[] =>
  all.flatMap((one) => {
    if (isOdd(one)) return [];
    const bytes = assembled(one.packets);
    return bytes === undefined ? [] : [{ ...one, bytes }];
  });

const envelopeOf = ({ packets }: Pick<Whole, 'packets'>) => decodeEnvelope(bytesOf(packets[0]!));

function messageOf({ bytes }: Pick<Whole, 'bytes'>): NativeMessage | undefined {
  try {
    return readMessage(bytes);
  } catch {
    return undefined;
  }
}

describe('codec for recorded native messages', () => {
  it('preserves an envelope', () => {
    const heads = everything.flatMap(({ name, packets }) =>
      packets.map((hex) => ({ name, bytes: bytesOf(hex).subarray(0, ENVELOPE_BYTES) })),
    );
    const full = heads.filter(({ bytes }) => bytes.length === ENVELOPE_BYTES);
    expect(full.length).toBeGreaterThan(700);
    // Random bytes set the unused bits.
    expect(differing(full, ({ bytes }) => encodeEnvelope(decodeEnvelope(bytes)).equals(bytes))).toEqual([
      'tcp: bad: random bytes',
      'udp: bad: random bytes',
      'http: tunnel: random bytes',
    ]);
  });

  it('preserves header, body and credential', () => {
    const all = whole(everything);
    expect(all.length).toBeGreaterThan(500);
    const isSame = (one: Whole): boolean => {
      const message = messageOf(one);
      return message !== undefined && encodeMessage(message).equals(one.bytes);
    };
    expect(differing(all, isSame)).toEqual([]);
  });

  it('preserves a message split into packets', () => {
    const isSame = (one: Whole): boolean => {
      const given = one.packets.map(bytesOf).sort((a, b) => a.readInt32BE(12) - b.readInt32BE(12));
      const [head] = given.map(decodeEnvelope);
      const isOne = given.length === 1;
      const made = isOne ? [frame(head!, one.bytes)] : toPackets(head!, one.bytes);
      return Buffer.concat(made).equals(Buffer.concat(given));
    };
    expect(differing(whole(everything), isSame)).toEqual([]);
  });

  it('preserves the body of a resolution', () => {
    const isSame = (one: Whole): boolean => {
      const decoded = decodeRequest(one.bytes, { isPadded: false });
      if (!decoded.ok) return false;
      const { resolution } = decoded.value;
      return resolution === undefined || encodeResolution(resolution).equals(messageOf(one)!.body);
    };
    expect(differing(whole(requests), isSame)).toEqual([]);
  });

  it('preserves the body of a response', () => {
    const questions = new Map(whole(requests).map((one) => [one.name, one]));
    const isSame = (one: Whole): boolean => {
      const message = messageOf(one)!;
      // Responses to administrators have different bodies.
      if (message.header.opCode > OP_CODE.siteInfo && message.header.responseCode === RESPONSE_CODE.success)
        return true;
      const { version } = envelopeOf(one);
      const question = questions.get(one.name);
      const flags = isEarlier(version, 1) ? messageOf(question!)!.header.flags : message.header.flags;
      const decoded = decodeResponse(message, { hasDigest: (flags & OP_FLAG.returnDigest) !== 0 });
      if (!decoded.ok) return false;
      const { digest, body } = decoded.value;
      return Buffer.concat([digest, encodeBody(body, Infinity)!]).equals(message.body);
    };
    expect(differing(whole(responses), isSame)).toEqual([]);
  });

  it('computes the recorded digest of a request', () => {
    const asked = whole(requests).filter(
      (one) => ((messageOf(one)?.header.flags ?? 0) & OP_FLAG.returnDigest) !== 0,
    );
    expect(asked.length).toBeGreaterThan(10);
    const isSame = ({ name, bytes }: Whole): boolean => {
      const answer = whole(responses).find((one) => one.name === name)!;
      const request = decodeRequest(bytes, { isPadded: false });
      const digest = encodeDigest(envelopeOf(answer).version, request.ok ? request.value.digested : bytes);
      return messageOf(answer)!.body.subarray(0, digest.length).equals(digest);
    };
    expect(differing(asked, isSame)).toEqual([]);
  });

  it('converts record JSON to the bytes that the server sends, and back', () => {
    let compared = 0;
    const different: string[] = [];
    for (const one of whole(responses)) {
      const decoded = decodeResponse(messageOf(one)!, { hasDigest: false });
      if (!decoded.ok || decoded.value.body.kind !== 'record') continue;
      const { handle, values } = decoded.value.body;
      const [[, json]] = native.records[handle.toString()] ?? [[404, '{}']];
      const known = (JSON.parse(json) as { values?: HandleValue[] }).values ?? [];
      for (const value of values) {
        const same = known.find(({ index }) => index === value.index);
        compared++;
        const sent = encodeBody({ kind: 'record', handle, values: [value] }, Infinity)!;
        const isSame = same && encodeBody({ kind: 'record', handle, values: [same] }, Infinity)!.equals(sent);
        if (!isSame || JSON.stringify(value) !== JSON.stringify(same))
          different.push(`${one.name} ${value.index}`);
      }
    }
    expect(compared).toBeGreaterThan(300);
    // The record was rewritten for each of three sizes, and only the last JSON is recorded.
    expect(different).toEqual([
      'udp: response around 492 bytes (pad 407) 1',
      'udp: response around 492 bytes (pad 409) 1',
    ]);
  });
});
