// The schemas of bodies. Bodies that are validated have the schema of their validator.
import { z } from 'zod';
import { logLevelBody, purgeBody } from '../admin/api.js';
import { batchBody } from '../record/batch/request.js';
import { bodyValue } from '../v2/translation/schema.js';
import { type Schema, integer, list, object, ref, text } from './parts.js';

const number: Schema = { type: 'number' };
const described = (schema: Schema, description: string): Schema => ({ ...schema, description });

const value: Schema = object({
  index: integer,
  type: { ...text, examples: ['URL'] },
  data: {
    description: 'Bytes by format; in a request a string alone has the format string.',
    type: ['object', 'string', 'number', 'boolean'],
    properties: {
      format: { ...text, examples: ['string', 'base64', 'hex', 'admin', 'vlist', 'site', 'key'] },
      value: {},
    },
  },
  'permissions?': described(text, 'Admin read, admin write, public read, public write; default `1110`.'),
  'ttl?': { description: 'Seconds, or an absolute time.', type: ['integer', 'string'] },
  'timestamp?': described(text, 'Time of the last change; set by the server.'),
  'references?': list(object({ handle: text, index: { ...integer, minimum: 0 } })),
});

const record: Schema = object({
  responseCode: described(
    integer,
    '1: found or done. 100: no such handle. 200: no such values. Others: see message.',
  ),
  'handle?': described(text, 'As in the request; the minted one after `mintNewSuffix`.'),
  'message?': text,
  'values?': list(ref('Value')),
});

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
  'code?': described(text, 'Name of the error in the catalogue.'),
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
      'pid?': integer,
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
  body: ref('Record'),
});

const batch: Record<string, Schema> = {
  Batch: list(batchElement),
  BatchBody: checkedBy(batchBody),
};

export const componentSchemas = (has: { batch: boolean }): Record<string, Schema> => ({
  Value: value,
  Record: record,
  HandleList: handleList,
  ...(has.batch && batch),
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
});
