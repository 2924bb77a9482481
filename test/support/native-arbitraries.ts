// Generates random record values in a Handle server's JSON, with every data format.
import fc from 'fast-check';
import {
  decodeData,
  encodeAdmin,
  encodePublicKey,
  encodeSite,
  encodeVlist,
} from '../../src/handle/value-data.js';
import type { HandleValue } from '../../src/handle/value.js';
import { unicodeTexts } from './code-points.js';

export const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const uint8 = fc.nat(0xff);
const uint16 = fc.nat(0xffff);
/** Excludes lone surrogates, which UTF-8 cannot represent. */
export const texts = unicodeTexts({ maxLength: 30 });
export const bytes = fc.uint8Array({ maxLength: 60 }).map((array) => Buffer.from(array));
const references = fc.array(fc.record({ handle: texts, index: int32 }), { maxLength: 4 });
const dates = int32.map((seconds) => new Date(seconds * 1000).toISOString().replace('.000Z', 'Z'));

const numbers = fc
  .uint8Array({ minLength: 1, maxLength: 40 })
  .filter(([first]) => first !== 0)
  .map((array) => Buffer.from(array).toString('base64url'));
const keys = fc.oneof(
  fc.record({ n: numbers, e: numbers }).map(({ n, e }) => ({ kty: 'RSA', n, e })),
  fc
    .record({ y: numbers, p: numbers, q: numbers, g: numbers })
    .map(({ y, p, q, g }) => ({ kty: 'DSA', y, p, q, g })),
);

const ipv6 = fc.array(fc.integer({ min: 1, max: 0xffff }), { minLength: 8, maxLength: 8 });
const addresses = fc.oneof(
  fc.ipV4(),
  ipv6.map((groups) => groups.map((group) => group.toString(16)).join(':')),
);

/** Generates sites, with members in a server's order. */
export const sites = fc
  .record({
    version: uint16,
    protocolVersion: fc.tuple(uint8, uint8).map(([major, minor]) => `${major}.${minor}`),
    serialNumber: uint16,
    primarySite: fc.boolean(),
    multiPrimary: fc.boolean(),
    hashOption: fc.constantFrom(0, 1, 2),
    hashFilter: texts,
    attributes: fc.array(fc.record({ name: texts, value: texts }), { maxLength: 3 }),
    servers: fc.array(
      fc.record({
        serverId: int32,
        address: addresses,
        publicKey: keys.map((value) => ({ format: 'key', value })),
        interfaces: fc.array(
          fc.record({
            query: fc.boolean(),
            admin: fc.boolean(),
            protocol: fc.constantFrom('UDP', 'TCP', 'HTTP', 'HTTPS'),
            port: int32,
          }),
          { maxLength: 4 },
        ),
      }),
      { maxLength: 3 },
    ),
  })
  .map(({ hashOption, hashFilter, attributes, servers, ...site }) => ({
    ...site,
    ...(hashOption !== 2 && { hashOption }),
    ...(hashFilter !== '' && { hashFilter }),
    attributes,
    servers,
  }));

const TYPES = ['URL', '', 'DÉSC', 'HS_ADMIN', 'HS_ADMIN.X', 'HS_VLIST', 'HS_SITE', 'HS_PUBKEY', 'HS_SECKEY'];

/** Generates types with data that may or may not match the type. */
const contents: fc.Arbitrary<{ type: string; data: Buffer }> = fc.oneof(
  fc.record({
    type: fc.oneof(texts, fc.constantFrom(...TYPES)),
    data: fc.oneof(
      bytes,
      texts.map((text) => Buffer.from(text)),
    ),
  }),
  fc.record({
    type: fc.constantFrom('HS_ADMIN', 'HS_ADMIN.OLD'),
    data: fc
      .record({ handle: texts, index: int32, permissions: fc.nat(0xfff), legacy: fc.boolean() })
      .map(encodeAdmin),
  }),
  fc.record({ type: fc.constant('HS_VLIST'), data: references.map(encodeVlist) }),
  fc.record({ type: fc.constant('HS_PUBKEY'), data: keys.map(encodePublicKey) }),
  fc.record({
    type: fc.constantFrom('HS_SITE', 'HS_SITE.6', 'HS_SITE.PREFIX', 'HS_NA_DELEGATE'),
    data: sites.map(encodeSite),
  }),
);

/** Generates values as a server's JSON interface returns them. */
export const serverValues: fc.Arbitrary<HandleValue> = fc
  .record({
    index: int32,
    content: contents,
    permissions: fc.nat(15).map((bits) => bits.toString(2).padStart(4, '0')),
    ttl: fc.oneof(int32, dates),
    timestamp: dates,
    references,
  })
  .map(({ index, content: { type, data }, permissions, ttl, timestamp, references: refs }) => ({
    index,
    type,
    data: decodeData(type, data),
    ...(permissions !== '1110' && { permissions }),
    ttl,
    ...(timestamp !== '1970-01-01T00:00:00Z' && { timestamp }),
    ...(refs.length > 0 && { references: refs }),
  }));
