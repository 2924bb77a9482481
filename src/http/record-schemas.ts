// Body schemas of the record interface for the OpenAPI document. A Handle server may send additional members.
import { z } from 'zod';
import { anyObject, errorCode } from './schemas.js';

const text = z.string();
const oneOrMore = <T extends z.ZodType>(schema: T) => z.union([schema, z.array(schema)]).optional();

const handleAndIndex = { handle: text, index: z.int() };

const dataOf = (format: string, value: z.ZodType) => z.object({ format: z.literal(format), value });

/** The data of a value, whose `format` (for example `string`) determines the form of `value`. */
const valueData = z
  .union([
    dataOf('string', text),
    dataOf('base64', text),
    dataOf(
      'admin',
      z.object({ ...handleAndIndex, permissions: text, legacyByteLength: z.boolean().optional() }),
    ),
    dataOf('vlist', z.array(z.object(handleAndIndex))),
    dataOf('site', anyObject),
    dataOf('key', anyObject),
  ])
  .meta({
    id: 'ValueData',
    description: 'Data of a value. Bytes that are not text have the format `base64`.',
  });

const FORMATS = ['string', 'base64', 'hex', 'admin', 'vlist', 'site', 'key'];

const sentData = z
  .union([
    text,
    z.number(),
    z.boolean(),
    z.object({ format: text.meta({ examples: FORMATS }), value: z.unknown() }),
  ])
  .describe('Data of a value. A bare string has the format `string`.');

const valueWith = (data: z.ZodType) =>
  z.object({
    index: z.int(),
    type: text.meta({ examples: ['URL'] }),
    data,
    permissions: text
      .optional()
      .describe(
        'Four digits, `1` or `0`: admin read, admin write, public read, public write. Default: `1110`.',
      ),
    ttl: z.union([z.int(), text]).optional().describe('Seconds, or an absolute expiry time.'),
    timestamp: text.optional().describe('Time of the last change, set by the Handle server.'),
    references: z.array(z.object({ handle: text, index: z.int().min(0) })).optional(),
  });

export const sentValue = valueWith(sentData).meta({ id: 'SentValue' });

export const record = z
  .object({
    responseCode: z
      .int()
      .describe(
        'Response code of the Handle System. 1: success. 200: the handle exists, but no value matches.',
      ),
    handle: text
      .optional()
      .describe('The handle as spelled in the request; with `mintNewSuffix`, the new handle.'),
    values: z.array(valueWith(valueData).meta({ id: 'Value' })).optional(),
  })
  .meta({ id: 'Record' });

export const recordError = z
  .object({
    responseCode: z
      .int()
      .describe('Response code of the Handle System. 100: no such handle. For other codes, see `message`.'),
    message: text.optional(),
    code: errorCode
      .optional()
      .describe(
        'Error code of this proxy. Absent if the Handle server sent the error, or if the proxy sends the same error as a Handle server.',
      ),
    handle: text.optional(),
  })
  .meta({ id: 'RecordError' });

const flag = z.union([z.boolean(), text]).optional();

export const recordParameters = z
  .object({
    index: oneOrMore(z.union([z.int(), text])),
    type: oneOrMore(text),
    auth: flag,
    publicOnly: flag,
    pretty: flag,
  })
  .meta({ id: 'RecordParameters' });

export const handleList = z
  .object({
    responseCode: z.int(),
    message: text.optional(),
    prefix: text.optional(),
    totalCount: text.optional(),
    page: z.int().optional(),
    pageSize: z.int().optional(),
    handles: z.array(text).optional(),
  })
  .meta({ id: 'HandleList' });

export const session = z
  .object({
    sessionId: text.optional(),
    nonce: text.optional().describe('Challenge for the client to sign, in base64.'),
    serverAlg: text.optional().describe('Algorithm of `serverSignature`.'),
    serverSignature: text
      .optional()
      .describe(
        'Signature of the Handle server over `nonce` and `cnonce`, in base64. Only if `cnonce` was sent.',
      ),
    authenticated: z.boolean().optional().describe('Whether the session has a logged-in user.'),
    id: text.optional().describe('Index and handle of the logged-in user.'),
    error: text.optional().describe('Reason why the login failed.'),
  })
  .meta({ id: 'Session' });

export const sessionLogin = z
  .object({
    version: text.optional(),
    sessionId: text.optional(),
    id: text.optional().describe('Index and handle of the user, such as `300:21.T11998/USER01`.'),
    type: z.enum(['HS_SECKEY', 'HS_PUBKEY']).optional(),
    nonce: text.optional(),
    cnonce: text.optional(),
    alg: text.optional(),
    signature: text.optional(),
    salt: text.optional(),
    iterations: z.int().optional(),
    length: z.int().optional(),
  })
  .meta({ id: 'SessionLogin' });

export const site = z.object({ responseCode: z.int(), site: anyObject }).meta({ id: 'Site' });

export const prefixList = z
  .object({ responseCode: z.int(), totalCount: text.optional(), prefixes: z.array(text).optional() })
  .meta({ id: 'PrefixList' });

export const batch = z
  .array(
    z.object({
      handle: text.describe('The handle as spelled in the request.'),
      status: z.int().describe('HTTP status of a GET of this handle.'),
      stale: z
        .enum(['error', 'timeout', 'backoff'])
        .optional()
        .describe('Why the element is stale, as in Cache-Status; absent otherwise.'),
      body: z.union([record, recordError]).describe('Response body of a GET of this handle.'),
    }),
  )
  .meta({ id: 'Batch' });
