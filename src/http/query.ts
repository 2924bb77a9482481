// Parses the query parameters of the record interface like a Handle server.
import { ServiceError } from '../errors.js';
import type { Selection } from '../handle/value.js';
import type { ListPage } from '../handle/handle-list.js';

/** JSON format options. */
export interface Format {
  pretty: boolean;
  /** Sanitised JSONP function name; may be empty. */
  callback?: string;
}

export interface RecordQuery extends Selection {
  authoritative: boolean;
  /** False only if the caller also requests private values. */
  publicOnly: boolean;
}

/** Parses a query as form data: `+` is a space, names may repeat, and flags need no value. */
export function readParameters(query: string): URLSearchParams {
  return new URLSearchParams(query);
}

export function readFormat(parameters: URLSearchParams): Format {
  const callback = parameters.get('callback');
  const pretty = readFlag(parameters.get('pretty'));
  return callback === null ? { pretty } : { pretty, callback: cleanCallback(callback) };
}

/**
 * Parses a record query. Accepts `cert` and `doNotRefer`, which do not affect the JSON (recordings
 * "cert=true", "doNotRefer=true"), and ignores unknown parameters.
 *
 * @throws ServiceError BAD_PARAMETER for an index that is not an integer
 */
export function readRecordQuery(parameters: URLSearchParams): RecordQuery {
  const publicOnly = parameters.get('publicOnly');
  return {
    indexes: parameters.getAll('index').map(readIndex),
    types: parameters.getAll('type'),
    authoritative: readFlag(parameters.get('auth')),
    publicOnly: publicOnly === null || readFlag(publicOnly),
  };
}

/**
 * Parses a flag: true if bare, `yes` or `true`; false if absent or anything else (recording "pretty=false").
 */
function readFlag(value: string | null): boolean {
  return value !== null && ['', 'yes', 'true'].includes(value.toLowerCase());
}

/** Parses a Java int: an optional sign and 32 bits (recordings "index=+1", "index=abc", "index=1,2"). */
function readIndex(value: string): number {
  const index = Number(value);
  if (!/^[+-]?\d+$/.test(value) || index > 0x7fffffff || index < -0x80000000) {
    throw new ServiceError('BAD_PARAMETER', {
      detail: `index has to be a whole number, not ${JSON.stringify(value)}`,
    });
  }
  return index;
}

/** Replaces invalid name characters with `_` (recording "callback with bad characters"). */
function cleanCallback(name: string): string {
  return name.replace(/[^]/g, (char, at: number) => (isNameCharacter(char, at) ? char : '_'));
}

const isNameCharacter = (char: string, at: number): boolean =>
  /[A-Za-z_$]/.test(char) ||
  (at > 0 && /\d/.test(char)) ||
  (char >= '\u00A0' && char !== '\u2028' && char !== '\u2029');

/** Returns the requested page; an empty object unless both numbers are set. */
export function pageIn(parameters: URLSearchParams): ListPage {
  const [page = '', pageSize = ''] = ['page', 'pageSize'].map((name) => parameters.get(name) ?? '');
  const areNumbers = [page, pageSize].every((text) => /^\d{1,9}$/.test(text));
  return areNumbers ? { page: Number(page), pageSize: Number(pageSize) } : {};
}
