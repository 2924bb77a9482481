// The public values of a record as bytes: made from what the server sent, narrowed to a question.
import { type Bytes, toBytes, toText } from './bytes.js';
import { sliceElements, writeJson } from './json.js';
import { type HandleValue, type Selection, type Ttl, asksForAll, isPublic, selects } from './value.js';

/** The public values as they were written, and their TTLs. A missing `ttl` is the server's 86400. */
export interface PublicValues {
  values: Bytes;
  ttls: Ttl[];
}

/**
 * Keeps the publicly readable values of a `values` array, or those that `isKept`, given as text and parsed.
 * Each stays byte for byte as the server wrote it, unless it was written over several lines.
 *
 * @throws TypeError when an element is not a handle value
 */
export function publicValues(
  valuesJson: string,
  parsed: readonly unknown[],
  isKept: (value: HandleValue) => boolean = isPublic,
): PublicValues {
  const kept: string[] = [];
  const ttls: Ttl[] = [];
  for (const [at, slice] of sliceElements(valuesJson).entries()) {
    const value = demandValue(parsed[at]);
    if (!isKept(value)) continue;
    kept.push(slice.includes('\n') ? writeJson(value) : slice);
    ttls.push(value.ttl ?? 86_400);
  }
  return { values: toBytes(`[${kept.join(',')}]`), ttls };
}

/** The text of a record narrowed to what was asked for, or undefined when nothing matches. */
export function selectValues(values: Bytes, selection: Selection): string | undefined {
  const text = toText(values);
  if (asksForAll(selection)) return text;
  const wanted = selects(selection);
  const kept = sliceElements(text).filter((slice) => wanted(demandValue(JSON.parse(slice))));
  return kept.length === 0 ? undefined : `[${kept.join(',')}]`;
}

function demandValue(parsed: unknown): HandleValue {
  const value = parsed as Partial<HandleValue> | null | undefined;
  if (!Number.isInteger(value?.index) || typeof value?.type !== 'string') {
    throw new TypeError('a value without index or type');
  }
  if (value.permissions !== undefined && typeof value.permissions !== 'string') {
    throw new TypeError('a value whose permissions are not a string');
  }
  return value as HandleValue;
}
