// The ETag and the date of what v2 shows of a record.
import { createHash } from 'node:crypto';
import { type HandleValue, lastFourPermissions } from '../handle/value.js';
import { shown } from './from-upstream.js';
import { showRefs } from './refs.js';
import { storedBytes } from './stored-data.js';
import { showTtl } from './ttl.js';

/** 132 bits in as many characters as the original's tags have. */
const TAG_LENGTH = 22;

/** A strong tag: the same for the same values, whenever and in whatever order a server sends them. */
export function etagOf(values: readonly HandleValue[]): string {
  const text = JSON.stringify(shown(values).map(canonicalForm));
  return `"${createHash('sha256').update(text).digest('base64url').slice(0, TAG_LENGTH)}"`;
}

/** What of a value makes a difference. The timestamp does not: a PUT that changes nothing keeps the tag. */
export function canonicalForm(value: HandleValue): string {
  const { index, type, ttl, references, permissions } = value;
  const { ttl_type, ttl: life } = showTtl(ttl);
  const bytes = storedBytes(value).toString('base64');
  return JSON.stringify([
    index,
    type,
    bytes,
    ttl_type,
    life,
    showRefs(references).sort(),
    lastFourPermissions(permissions),
  ]);
}

/** The newest timestamp of what is shown. */
export function lastModified(values: readonly HandleValue[]): Date | undefined {
  let newest = -Infinity;
  for (const { timestamp } of shown(values)) {
    const time = typeof timestamp === 'string' ? Date.parse(timestamp) : NaN;
    if (time > newest) newest = time;
  }
  return newest === -Infinity ? undefined : new Date(newest);
}
