// The schemas of bodies: what is validated comes from its validator, the rest is what is written and recorded.
import { z } from 'zod';
import { logLevelBody, purgeBody } from '../admin/api.js';
import { bodyValue } from '../v2/translation/schema.js';
import { type Schema, ref } from './parts.js';

const index: Schema = { type: 'integer', minimum: 0 };
const reference: Schema = {
  type: 'object',
  required: ['handle', 'index'],
  properties: { handle: { type: 'string' }, index },
};

const value: Schema = {
  type: 'object',
  required: ['index', 'type', 'data'],
  properties: {
    index: { type: 'integer' },
    type: { type: 'string', examples: ['URL'] },
    data: {
      description: 'Bytes by their form; when written, a string alone stands for itself.',
      type: ['object', 'string', 'number', 'boolean'],
      properties: {
        format: { type: 'string', examples: ['string', 'base64', 'hex', 'admin', 'vlist', 'site', 'key'] },
        value: {},
      },
    },
    permissions: {
      description: 'Admin read, admin write, public read, public write; `1110` when left out.',
      type: 'string',
    },
    ttl: { description: 'Seconds, or the time until which it holds.', type: ['integer', 'string'] },
    timestamp: { description: 'When it was last changed; set by the server.', type: 'string' },
    references: { type: 'array', items: reference },
  },
};

const record: Schema = {
  type: 'object',
  required: ['responseCode'],
  properties: {
    responseCode: {
      description: '1: found or done. 100: no such handle. 200: no such values. Others: see message.',
      type: 'integer',
    },
    handle: { description: 'As it was asked for; the minted one after `mintNewSuffix`.', type: 'string' },
    message: { type: 'string' },
    values: { type: 'array', items: ref('Value') },
  },
};

const handleList: Schema = {
  type: 'object',
  required: ['responseCode'],
  properties: {
    responseCode: { type: 'integer' },
    message: { type: 'string' },
    prefix: { type: 'string' },
    totalCount: { type: 'string' },
    page: { type: 'integer' },
    pageSize: { type: 'integer' },
    handles: { type: 'array', items: { type: 'string' } },
  },
};

const problem: Schema = {
  type: 'object',
  required: ['title', 'status', 'responseCode'],
  properties: {
    type: { const: 'about:blank' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    code: { description: 'Name of the failure in the catalogue of the README.', type: 'string' },
    responseCode: {
      description:
        'That of the Handle System. In a 404 100 means: no such handle. 4: no such path, 301: no prefix of this server.',
      type: 'integer',
    },
    handle: { type: 'string' },
  },
};

const v2Value: Schema = {
  type: 'object',
  required: ['idx', 'type', 'parsed_data', 'data', 'ttl_type', 'ttl', 'refs', 'privs'],
  properties: {
    idx: { type: 'integer' },
    type: { type: 'string' },
    parsed_data: {
      description: 'A text; an object for HS_ADMIN, a list for HS_VLIST; null when there is no such form.',
      type: ['string', 'object', 'array', 'null'],
    },
    data: { description: 'The bytes in base64.', type: 'string', contentEncoding: 'base64' },
    timestamp: { type: 'string' },
    ttl_type: { description: '0: seconds, 1: a time.', enum: [0, 1] },
    ttl: { type: ['integer', 'string'] },
    refs: { type: 'array', items: { type: 'string', examples: ['1:21.T11998/abc'] } },
    privs: { type: 'string', pattern: '^[r-][w-][r-][w-]$' },
  },
  additionalProperties: false,
};

const cacheCopies: Schema = {
  type: 'object',
  required: ['handle', 'cached', 'copies'],
  properties: {
    handle: { type: 'string' },
    cached: { type: 'boolean' },
    copies: {
      type: 'array',
      items: {
        type: 'object',
        required: ['tier', 'kind', 'use', 'ageSeconds', 'lifeLeftSeconds'],
        properties: {
          tier: { enum: ['memory', 'redis'] },
          pid: { type: 'integer' },
          kind: { enum: ['found', 'empty', 'not-found'] },
          use: { enum: ['fresh', 'stale', 'none'] },
          ageSeconds: { type: 'number' },
          lifeLeftSeconds: { type: 'number' },
          standInLeftSeconds: { type: 'number' },
          bytes: { type: 'integer' },
          hits: { type: 'integer' },
        },
      },
    },
  },
};

const minted: Schema = {
  type: 'object',
  required: ['epic-pid'],
  properties: { 'epic-pid': { type: 'string' } },
  additionalProperties: false,
};

/** What the code checks a body with; JSON Schema has no word for some of its rules. */
function checkedBy(validator: z.ZodType): Schema {
  const schema = z.toJSONSchema(validator, { io: 'input', unrepresentable: 'any' });
  // The document says for all of them which dialect they are in.
  delete schema.$schema;
  return schema;
}

export const componentSchemas = (): Record<string, Schema> => ({
  Value: value,
  Record: record,
  HandleList: handleList,
  Problem: problem,
  V2Value: v2Value,
  V2BodyValue: {
    ...checkedBy(bodyValue),
    description:
      'One of parsed_data and data is needed; both have to mean the same. Without idx the next free one is taken.',
    anyOf: [{ required: ['parsed_data'] }, { required: ['data'] }],
  },
  V2Minted: minted,
  PurgeOrder: checkedBy(purgeBody),
  LogLevel: checkedBy(logLevelBody),
  CacheCopies: cacheCopies,
});
