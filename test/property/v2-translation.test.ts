// Translating ePIC v2 values to record values and back is the identity, even through a Handle server.
import { fc, test } from '../support/property.js';
import { describe, expect } from 'vitest';
import { valueFromJson, valueToJson } from '../../src/dev-server/value.js';
import type { HandleValue } from '../../src/handle/value.js';
import { encodeAdmin, encodeVlist } from '../../src/handle/value-data.js';
import { parseData } from '../../src/v2/translation/data.js';
import {
  type V2Value,
  automaticAdmin,
  planWrite,
  readInputs,
  recordEtag,
  toRecord,
  toV2,
} from '../support/v2-values.js';
import { unicodeTexts } from '../support/code-points.js';

const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const texts = unicodeTexts({ maxLength: 30 });
const handles = fc.oneof(
  texts.map((text) => `21.T1/${text}`),
  fc.constantFrom('0.NA/21.T1', '1:a/b:c', 'a/b\nc', ''),
);
/** Generates the non-negative seconds that ePIC v2 stores as TTLs and dates. */
const uint31 = fc.nat(2 ** 31 - 1);
const isoDates = uint31.map((seconds) => new Date(seconds * 1000).toISOString().replace('.000Z', 'Z'));

const references = fc.array(fc.record({ handle: handles, index: int32 }), { maxLength: 3 });
const bytes = fc.uint8Array({ maxLength: 30 }).map((array) => Buffer.from(array));
const controls = fc
  .array(fc.constantFrom('\0', '\u0001', '\t', '\n', '\u000b', '\r', '\u0014', '\u007f', '\u0085', 'a', '漢'))
  .map((characters) => Buffer.from(characters.join('')));
const adminBytes = fc
  .record({ handle: handles, index: int32, permissions: fc.nat(0xfff), legacy: fc.boolean() })
  .map(encodeAdmin);

const contents = fc.oneof(
  fc.record({
    type: fc.oneof(
      texts,
      fc.constantFrom('URL', '10320/loc', 'HS_SITE', 'HS_PUBKEY', 'HS_ADMIN.X', 'hs_admin'),
    ),
    data: fc.oneof(
      bytes,
      controls,
      adminBytes,
      texts.map((text) => Buffer.from(text)),
    ),
  }),
  fc.record({ type: fc.constant('HS_ADMIN'), data: fc.oneof(adminBytes, bytes) }),
  fc.record({ type: fc.constant('HS_VLIST'), data: fc.oneof(references.map(encodeVlist), bytes) }),
);

const lives = fc.oneof(
  fc.record({ ttl_type: fc.constant(0 as const), ttl: uint31 }),
  fc.record({ ttl_type: fc.constant(1 as const), ttl: isoDates }),
);

/** Generates any value that GET can return. */
const v2Values: fc.Arbitrary<V2Value> = fc
  .record({
    idx: fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 2 ** 31 - 1 })),
    content: contents,
    life: lives,
    references,
    privs: fc.constantFrom('rwr-', 'rw--', '-wr-', '--r-', 'r---', '----', 'rwrw', '-w-w'),
  })
  .filter(({ content: { type } }) => !/^hs_seckey/i.test(type))
  .map(({ idx, content: { type, data }, life, references, privs }) => ({
    idx,
    type,
    parsed_data: parseData(type, data),
    data: data.toString('base64'),
    ...life,
    refs: references.map(({ handle, index }) => `${index}:${handle}`),
    privs,
  }));

const v2Records = fc
  .uniqueArray(v2Values, { selector: ({ idx }) => idx, minLength: 1, maxLength: 5 })
  .map((values) => values.sort((one, other) => one.idx - other.idx));

/** Translates a list, and drops the administrator value that the translation adds. */
const translated = (body: readonly object[]): HandleValue[] =>
  toRecord(readInputs(JSON.parse(JSON.stringify(body))), automaticAdmin).slice(0, body.length);

/** Returns the values as a Handle server stores and returns them. */
const throughServer = (values: readonly HandleValue[]): HandleValue[] =>
  values.map((value) => valueToJson(valueFromJson(JSON.parse(JSON.stringify(value)), 0)));

describe('ePIC v2 list', () => {
  test.prop([v2Records])('is unchanged by translation to record values and back', (list) => {
    expect(toV2(translated(list))).toEqual(list);
  });

  test.prop([v2Records])('is unchanged by a round trip through a Handle server', (list) => {
    expect(toV2(throughServer(translated(list)))).toEqual(list);
  });

  test.prop([v2Records])('has the same ETag after being sent back', (list) => {
    const stored = throughServer(translated(list));
    expect(recordEtag(throughServer(translated(toV2(stored))))).toBe(recordEtag(stored));
  });

  test.prop([v2Records])('changes nothing on the server when sent back', (list) => {
    const stored = throughServer(translated(list));
    const next = translated(toV2(stored));
    const plan = planWrite({ current: stored, isFull: true, next });
    expect(plan.kind === 'whole' && throughServer(plan.values)).toEqual(stored);
  });

  test.prop([v2Records])('has the same meaning with alternative spellings of its members', (list) => {
    const rewritten = list.map(({ idx, privs, refs, ttl_type, ttl, parsed_data, ...value }, at) => ({
      ...value,
      idx: String(idx),
      refs: refs.map((ref) => {
        const [digits, ...handle] = ref.split(':');
        return { idx: at % 2 === 0 ? Number(digits) : digits, handle: handle.join(':') };
      }),
      ttl_type: String(ttl_type),
      ttl: ttl_type === 1 ? Date.parse(String(ttl)) / 1000 : ttl,
      admin_read: privs[0] === 'r',
      admin_write: privs[1] === 'w',
      pub_read: privs[2] === 'r',
      pub_write: privs[3] === 'w',
      data: value.data.replace(/.{60}/g, '$&\n'),
      timestamp: at,
      ...(at % 2 === 0 && { parsed_data }),
    }));
    expect(translated(rewritten)).toEqual(translated(list));
  });
});

describe('ePIC v2 text value', () => {
  test.prop([texts])('is preserved in data, and in parsed_data unless that is null', (text) => {
    const [shown] = toV2(throughServer(translated([{ type: 'X', parsed_data: text }])));
    expect(Buffer.from(shown!.data, 'base64').toString()).toBe(text);
    expect([text, null]).toContain(shown!.parsed_data);
  });

  const almostBase64 = fc.string({
    unit: fc.constantFrom('a', 'Q', '0', '+', '/', '=', '-', '\n'),
    maxLength: 9,
  });
  test.prop([fc.oneof(texts, almostBase64)])(
    'is preserved when sent in data, unless it is canonical base64',
    (text) => {
      const [shown] = toV2(throughServer(translated([{ type: 'X', data: text }])));
      const bytes = Buffer.from(text, 'base64');
      const isBase64 = bytes.toString('base64') === text;
      expect(shown!.data).toBe(isBase64 ? text : Buffer.from(text).toString('base64'));
    },
  );
});
