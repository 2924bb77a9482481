// The body of a PUT: its media type, its JSON, and the values in it.
import { upperAscii } from '../../src/handle/handle.js';
import { javaException } from './bad-input.js';
import type { Call } from './call.js';
import { readJson } from './lenient-json.js';
import { type StoredValue, valueFromJson } from './value.js';

/** Reads the values of a PUT; the handle in the body, if any, must be that of the path. */
export function readRecordBody(call: Call, timestampSeconds: number): StoredValue[] {
  return valuesIn(readJson(bodyText(call)), call.handle).map((value) =>
    valueFromJson(value, timestampSeconds),
  );
}

function bodyText({ contentType, body }: Call): string {
  const [mediaType = '', ...parameters] = (contentType ?? '').split(';').map((part) => part.trim());
  if (mediaType.toLowerCase() !== 'application/json') {
    throw javaException(`Unsupported media type ${contentType ?? 'null'}`);
  }
  const charset = parameters.find((parameter) => /^charset=/i.test(parameter))?.slice('charset='.length);
  return body.toString(charset?.toLowerCase() === 'iso-8859-1' ? 'latin1' : 'utf8');
}

function valuesIn(json: unknown, handle: string): readonly unknown[] {
  if (Array.isArray(json)) return json;
  if (json === null || typeof json !== 'object') throw javaException('Invalid JSON in PUT request');
  if ('values' in json) return valuesOfRecord(json, handle);
  if ('index' in json) return [json];
  throw javaException('Invalid JSON in PUT request');
}

function valuesOfRecord(json: { values: unknown; handle?: unknown }, handle: string): readonly unknown[] {
  const named = json.handle;
  if (typeof named === 'string' && upperAscii(named) !== upperAscii(handle)) {
    throw javaException('Mismatched handle in PUT request');
  }
  return Array.isArray(json.values) ? json.values : [];
}
