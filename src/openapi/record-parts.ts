// Parts of the calls of the record interface.
import type { ErrorCode } from '../errors.js';
import { type Parameter, type ResponseObject, type Schema, integer, list, query, text } from './parts.js';

export const RECORD_TAG = 'Record interface';

export const flag: Schema = { ...text, enum: ['', 'true', 'false'] };

export const selection: readonly [indexes: Parameter, types: Parameter] = [
  query('index', 'Only the values with these indexes; may be repeated.', list(integer)),
  query(
    'type',
    'Only the values of these types; `URL.` with the dot means its subtypes too; may be repeated.',
    list(text),
  ),
];

export const form: readonly Parameter[] = [
  query('pretty', 'Indented JSON.', flag),
  query('callback', 'JSONP: the name of the function. With a login it is 403.'),
];

/** With `callback` every response is a script. */
export const inForm = (schema: Schema): Required<Pick<ResponseObject, 'content'>> => ({
  content: { 'application/json': { schema }, 'application/javascript': { schema: text } },
});

/** Errors of the proxy in any call. */
export const PROXY_CODES: readonly ErrorCode[] = [
  'BAD_PATH',
  'BAD_PARAMETER',
  'EMPTY_HANDLE',
  'HANDLE_TOO_LONG',
  'REQUEST_LINE_TOO_LONG',
  'JSONP_WITH_LOGIN',
  'TRAFFIC_REFUSED',
  'RATE_LIMITED',
  'UPSTREAM_BAD_ANSWER',
  'UPSTREAM_FAILED',
  'UPSTREAM_UNREACHABLE',
  'UPSTREAM_RESTING',
  'OVERLOADED',
  'UPSTREAM_TIMEOUT',
];
