// Makes v2 values of record-interface values.
import type { HandleValue } from '../handle/value.js';
import { parsedData } from './content.js';
import { showPrivs } from './privs.js';
import { showRefs } from './refs.js';
import { storedBytes } from './stored-data.js';
import { showTtl } from './ttl.js';
import { type V2Value, isHidden } from './value.js';

/** The values v2 shows, sorted by index; HS_SECKEY is never among them. */
export function fromUpstream(values: readonly HandleValue[]): V2Value[] {
  return shown(values).map(showValue);
}

/** What of a record can be seen through v2, sorted by index. */
export function shown(values: readonly HandleValue[]): HandleValue[] {
  return values.filter((value) => !isHidden(value)).sort((one, other) => one.index - other.index);
}

/** The order of the members is the original's. */
function showValue(value: HandleValue): V2Value {
  const { index, type, timestamp, ttl, references, permissions } = value;
  const bytes = storedBytes(value);
  return {
    idx: index,
    type,
    parsed_data: parsedData(type, bytes),
    data: bytes.toString('base64'),
    ...(typeof timestamp === 'string' && { timestamp }),
    ...showTtl(ttl),
    refs: showRefs(references),
    privs: showPrivs(permissions),
  };
}
