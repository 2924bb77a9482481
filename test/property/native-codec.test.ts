// Decoding is the inverse of encoding, and arbitrary bytes never cause a crash.
import { fc, test } from '../support/property.js';
import { describe, expect } from 'vitest';
import { decodeSite, encodeData, encodeSite } from '../../src/handle/value-data.js';
import {
  type Version,
  OWN_VERSION,
  decodeEnvelope,
  encodeEnvelope,
  negotiateVersion,
  OP_FLAG,
  encodeMessage,
  readMessage,
  PACKET_BYTES,
  toPackets,
  decodeRequest,
  type ResponseBody,
  encodeBody,
  encodeDigest,
} from '../../src/plugins/native/codec.js';
import { bytes, int32, serverValues, sites, texts } from '../support/native-arbitraries.js';
import { encodeResolution } from '../../src/cli/native-client.js';
import { decodeResponse } from '../support/native-decoder.js';

const version = (majors: fc.Arbitrary<number>): fc.Arbitrary<Version> =>
  fc.record({ major: majors, minor: fc.nat(255) });

const envelopes = fc.record({
  version: version(fc.nat(255)),
  suggested: version(fc.nat(3)),
  isCompressed: fc.boolean(),
  isEncrypted: fc.boolean(),
  isTruncated: fc.boolean(),
  sessionId: int32,
  requestId: int32,
  sequence: int32,
  length: int32,
});

const headers = fc.record({
  opCode: int32,
  responseCode: int32,
  flags: int32,
  siteSerial: fc.nat(0xffff),
  recursionCount: fc.nat(0xff),
  expiration: int32,
});

const resolutions = fc.record({
  handle: bytes,
  indexes: fc.array(int32, { maxLength: 5 }),
  types: fc.array(texts, { maxLength: 5 }),
});

/** Generates bodies with a matching opcode and response code. */
const bodies: fc.Arbitrary<{ opCode: number; responseCode: number; body: ResponseBody }> = fc.oneof(
  fc.record({
    opCode: fc.constant(1),
    responseCode: fc.constant(1),
    body: fc.record({
      kind: fc.constant('record' as const),
      handle: bytes,
      values: fc.array(serverValues, { maxLength: 4 }),
    }),
  }),
  fc.record({
    opCode: fc.constant(1),
    responseCode: fc.constantFrom(302, 303),
    body: fc.record({
      kind: fc.constant('referral' as const),
      handle: bytes,
      values: fc.array(serverValues, { maxLength: 4 }),
    }),
  }),
  fc.record({
    opCode: fc.constant(2),
    responseCode: fc.constant(1),
    body: fc.record({ kind: fc.constant('site' as const), site: sites.map(encodeSite) }),
  }),
  fc.record({
    opCode: fc.constant(1),
    responseCode: fc.constant(402),
    body: fc.record({ kind: fc.constant('challenge' as const), nonce: bytes }),
  }),
  fc.record({
    opCode: int32,
    responseCode: fc.constantFrom(2, 3, 4, 5, 7, 100, 200, 301, 999),
    body: fc.record({ kind: fc.constant('text' as const), text: texts }),
  }),
);

describe('native codec', () => {
  describe('round trip', () => {
    test.prop([envelopes])('preserves an envelope', (envelope) => {
      expect(decodeEnvelope(encodeEnvelope(envelope))).toEqual(envelope);
    });

    test.prop([headers, bytes, fc.option(bytes, { nil: undefined })])(
      'preserves a message',
      (header, body, credential) => {
        const message = { header, body, credential };
        expect(readMessage(encodeMessage(message))).toEqual(message);
      },
    );

    test.prop([headers, resolutions, fc.boolean()])(
      'preserves a resolution',
      (header, resolution, isPadded) => {
        const body = encodeResolution(resolution);
        const asked = { ...header, opCode: 1, responseCode: 0 };
        const message = encodeMessage({ header: asked, body, credential: undefined });
        expect(decodeRequest(message, { isPadded })).toEqual({
          ok: true,
          value: { header: asked, resolution, digested: message },
        });
      },
    );

    test.prop([bodies, headers, version(fc.constantFrom(1, 2, 5)), bytes, fc.boolean()])(
      'preserves a response body with and without a digest',
      ({ opCode, responseCode, body }, header, asked, digested, hasDigest) => {
        const digest = hasDigest ? encodeDigest(asked, digested) : Buffer.alloc(0);
        const message = {
          header: { ...header, opCode, responseCode },
          body: Buffer.concat([digest, encodeBody(body, Infinity)!]),
          credential: Buffer.alloc(0),
        };
        expect(decodeResponse(message, { hasDigest })).toEqual({ ok: true, value: { digest, body } });
      },
    );

    test.prop([sites])('preserves a site', (site) => {
      expect(decodeSite(encodeSite(site))).toEqual(site);
      expect(decodeSite(encodeData({ format: 'site', value: site }))).toEqual(site);
    });

    test.prop([envelopes, fc.nat(5 * PACKET_BYTES)])(
      'preserves a message split into packets',
      (envelope, length) => {
        const message = Buffer.alloc(length, 'message');
        const packets = toPackets(envelope, message);
        expect(Buffer.concat(packets.map((packet) => packet.subarray(20)))).toEqual(message);
        for (const [sequence, packet] of packets.entries()) {
          const isLast = sequence === packets.length - 1;
          if (!isLast) expect(packet.length).toBe(512);
          expect(decodeEnvelope(packet)).toEqual({
            ...envelope,
            isTruncated: packets.length > 1,
            sequence,
            length,
          });
        }
      },
    );
  });

  describe('arbitrary bytes', () => {
    const long = fc.uint8Array({ maxLength: 1500 }).map((array) => Buffer.from(array));

    test.prop([long, fc.boolean()])('decode to a request or a reported problem', (message, isPadded) => {
      const decoded = decodeRequest(message, { isPadded });
      if (!decoded.ok) expect(decoded.problem).not.toBe('');
    });

    test.prop([long, headers, fc.boolean()])(
      'decode to a response body or a reported problem',
      (body, header, hasDigest) => {
        const decoded = decodeResponse({ header, body, credential: undefined }, { hasDigest });
        if (!decoded.ok) expect(decoded.problem).not.toBe('');
      },
    );

    test.prop([resolutions, fc.nat()])(
      'decode despite missing lists only if padded with zeros',
      (resolution, cut) => {
        const header = {
          opCode: 1,
          responseCode: 0,
          flags: OP_FLAG.publicOnly,
          siteSerial: 0,
          recursionCount: 0,
          expiration: 0,
        };
        const body = encodeResolution(resolution);
        const message = encodeMessage({ header, body, credential: undefined });
        const part = message.subarray(0, 24 + 4 + resolution.handle.length + (cut % 4));
        // The body length matches the truncated message, so only the lists are missing.
        part.writeInt32BE(part.length - 24, 20);
        expect(decodeRequest(part, { isPadded: false }).ok).toBe(false);
        const padded = decodeRequest(part, { isPadded: true });
        expect(padded.ok && padded.value.resolution?.handle).toEqual(resolution.handle);
      },
    );
  });

  test.prop([envelopes])(
    'negotiates no version above its own unless the client suggested none',
    (envelope) => {
      const { major, minor } = negotiateVersion(envelope);
      if (envelope.suggested.major === 0) expect({ major, minor }).toEqual(envelope.version);
      else expect(major * 256 + minor).toBeLessThanOrEqual(OWN_VERSION.major * 256 + OWN_VERSION.minor);
    },
  );
});
