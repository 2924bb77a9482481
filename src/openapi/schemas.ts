// The schemas of bodies. Bodies that are validated have the schema of their validator.
import { z } from 'zod';
import { logLevelBody, purgeBody } from '../admin/api.js';
import { CATALOGUE } from '../errors.js';
import { batchBody } from '../record/batch/request.js';
import { bodyValue } from '../v2/translation/schema.js';
import { type Schema, integer, list, object, ref, text } from './parts.js';

const number: Schema = { type: 'number' };
const described = (schema: Schema, description: string): Schema => ({ ...schema, description });

const data = (format: string, schema: Schema): Schema => object({ format: { const: format }, value: schema });

const handleAndIndex = { handle: text, index: integer };

/** The members that a program reads by the format, such as `"format": "string"`. */
const valueData: Schema = {
  description: 'Bytes that are no text are base64.',
  anyOf: [
    data('string', text),
    data('base64', text),
    data('admin', object({ ...handleAndIndex, permissions: text, 'legacyByteLength?': { type: 'boolean' } })),
    data('vlist', list(object(handleAndIndex))),
    data('site', { type: 'object' }),
    data('key', { type: 'object' }),
  ],
};

const sentData: Schema = {
  description: 'Text alone has the format string.',
  anyOf: [
    text,
    number,
    { type: 'boolean' },
    object({
      format: { ...text, examples: ['string', 'base64', 'hex', 'admin', 'vlist', 'site', 'key'] },
      value: {},
    }),
  ],
};

const valueWith = (valueData: Schema): Schema =>
  object({
    index: integer,
    type: { ...text, examples: ['URL'] },
    data: valueData,
    'permissions?': described(text, 'Admin read, admin write, public read, public write; default `1110`.'),
    'ttl?': { description: 'Seconds, or an absolute time.', type: ['integer', 'string'] },
    'timestamp?': described(text, 'Time of the last change; set by the server.'),
    'references?': list(object({ handle: text, index: { ...integer, minimum: 0 } })),
  });

const record: Schema = object({
  responseCode: described(integer, '1: found or done. 200: no such values.'),
  'handle?': described(text, 'As in the request; the minted one after `mintNewSuffix`.'),
  'values?': list(ref('Value')),
});

const recordError: Schema = object({
  responseCode: described(integer, 'That of the Handle System. 100: no such handle. Others: see message.'),
  'message?': text,
  'code?': described(
    ref('ErrorCode'),
    'Of an error of this proxy; missing where the Handle server answered.',
  ),
  'handle?': text,
});

const oneOrMore = (schema: Schema): Schema => ({ anyOf: [schema, list(schema)] });

/** As the form of a POST too. */
const recordParameters: Schema = object({
  'index?': oneOrMore({ type: ['integer', 'string'] }),
  'type?': oneOrMore(text),
  'auth?': { type: ['boolean', 'string'] },
  'publicOnly?': { type: ['boolean', 'string'] },
  'pretty?': { type: ['boolean', 'string'] },
});

const errorCode: Schema = { ...text, enum: Object.keys(CATALOGUE) };

const session: Schema = object({
  'sessionId?': text,
  'nonce?': described(text, 'To be signed.'),
  'serverAlg?': text,
  'serverSignature?': text,
  'authenticated?': { type: 'boolean' },
  'id?': described(text, 'Index and handle of the user.'),
  'error?': text,
});

const sessionLogin: Schema = object({
  'version?': text,
  'sessionId?': text,
  'id?': described(text, 'Index and handle of the user, such as `300:21.T11998/USER01`.'),
  'type?': { enum: ['HS_SECKEY', 'HS_PUBKEY'] },
  'nonce?': text,
  'cnonce?': text,
  'alg?': text,
  'signature?': text,
  'salt?': text,
  'iterations?': integer,
  'length?': integer,
});

const site: Schema = object({ responseCode: integer, site: { type: 'object' } });

const prefixList: Schema = object({ responseCode: integer, 'totalCount?': text, 'prefixes?': list(text) });

const handleList: Schema = object({
  responseCode: integer,
  'message?': text,
  'prefix?': text,
  'totalCount?': text,
  'page?': integer,
  'pageSize?': integer,
  'handles?': list(text),
});

const problem: Schema = object({
  'type?': { const: 'about:blank' },
  title: text,
  status: integer,
  'detail?': text,
  code: ref('ErrorCode'),
  responseCode: described(
    integer,
    'That of the Handle System. In a 404, 100: no such handle; 4: no such path; 301: the prefix is not served here.',
  ),
  'handle?': text,
});

const v2Value: Schema = {
  ...object({
    idx: integer,
    type: text,
    parsed_data: {
      description: 'Text; an object for HS_ADMIN, a list for HS_VLIST; null when there is no such form.',
      type: ['string', 'object', 'array', 'null'],
    },
    data: { ...described(text, 'The bytes in base64.'), contentEncoding: 'base64' },
    'timestamp?': text,
    ttl_type: { description: '0: seconds, 1: absolute time.', enum: [0, 1] },
    ttl: { type: ['integer', 'string'] },
    refs: list({ ...text, examples: ['1:21.T11998/abc'] }),
    privs: { ...text, pattern: '^[r-][w-][r-][w-]$' },
  }),
  additionalProperties: false,
};

const cacheCopies: Schema = object({
  handle: text,
  cached: { type: 'boolean' },
  copies: list(
    object({
      tier: { enum: ['memory', 'redis'] },
      kind: { enum: ['found', 'empty', 'not-found'] },
      use: { enum: ['fresh', 'stale', 'none'] },
      ageSeconds: number,
      lifeLeftSeconds: number,
      'standInLeftSeconds?': number,
      'bytes?': integer,
      'hits?': integer,
    }),
  ),
});

const minted: Schema = { ...object({ 'epic-pid': text }), additionalProperties: false };

/** The schema of a validator, except for rules that JSON Schema cannot express. */
function checkedBy(validator: z.ZodType): Schema {
  const schema = z.toJSONSchema(validator, { io: 'input', unrepresentable: 'any' });
  // OpenAPI 3.1 declares the dialect for the whole document.
  delete schema.$schema;
  return schema;
}

const batchElement: Schema = object({
  handle: described(text, 'As in the request.'),
  status: described(integer, 'Status of the GET of this handle.'),
  body: { anyOf: [ref('Record'), ref('RecordError')] },
});

export const SCHEMAS: Readonly<Record<string, Schema>> = {
  Value: valueWith(ref('ValueData')),
  ValueData: valueData,
  SentValue: valueWith(sentData),
  Record: record,
  RecordError: recordError,
  RecordParameters: recordParameters,
  ErrorCode: errorCode,
  HandleList: handleList,
  Session: session,
  SessionLogin: sessionLogin,
  Site: site,
  PrefixList: prefixList,
  Batch: list(batchElement),
  BatchBody: checkedBy(batchBody),
  Problem: problem,
  V2Value: v2Value,
  V2BodyValue: {
    ...checkedBy(bodyValue),
    description:
      'parsed_data or data is required; both must have the same meaning. Without idx the next free index is used.',
    anyOf: [{ required: ['parsed_data'] }, { required: ['data'] }],
  },
  V2Minted: minted,
  PurgeOrder: checkedBy(purgeBody),
  LogLevel: checkedBy(logLevelBody),
  CacheCopies: cacheCopies,
};
