// What everybody may read of a record, through the cache that all readers share.
import type { ServiceError } from '../errors.js';
import { toText } from '../handle/bytes.js';
import { parseJson } from '../handle/json.js';
import type { HandleValue } from '../handle/value.js';
import type { FromEntry, Resolution } from '../resolver/resolution.js';
import type { V2Deps } from './deps.js';
import { refusalOf } from './refusal.js';

/** @throws ServiceError when the server refuses or fails */
export async function resolvePublic(
  { resolve }: Pick<V2Deps, 'resolve'>,
  handle: string,
): Promise<FromEntry> {
  const resolution = await resolve(handle, { authoritative: false });
  if (resolution.kind === 'entry') return resolution;
  throw refusedAs(resolution);
}

function refusedAs({ refused }: Extract<Resolution, { kind: 'refused' }>): ServiceError {
  const { status, members, retryAfter } = refused;
  return refusalOf({ status, members, responseCode: members['responseCode'] as number, retryAfter }, 'read');
}

/** The values of an entry; none when it shows the public nothing, undefined when there is no handle. */
export function valuesOf({ entry }: FromEntry): HandleValue[] | undefined {
  if (entry.kind === 'not-found') return undefined;
  return entry.kind === 'empty' ? [] : (parseJson(toText(entry.values)) as HandleValue[]);
}

/** @throws ServiceError when the server refuses or fails */
export async function publicValues(
  deps: Pick<V2Deps, 'resolve'>,
  handle: string,
): Promise<HandleValue[] | undefined> {
  return valuesOf(await resolvePublic(deps, handle));
}
