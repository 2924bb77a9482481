// The values of a record that a resolution wants: by index or type, in stored order.
import type { HandleValue, Selection } from '../handle/value.js';
import { createValueFilter } from '../handle/value.js';

/** An empty type, or a dot alone, selects nothing (recordings "type=. (only a dot)", "type count 5, none there"). */
const selectsSomething = (type: string): boolean => type !== '' && type !== '.';

export function selectValues(values: readonly HandleValue[], { indexes, types }: Selection): HandleValue[] {
  if (indexes.length === 0 && types.length === 0) return [...values];
  const wanted = { indexes, types: types.filter(selectsSomething) };
  if (indexes.length === 0 && wanted.types.length === 0) return [];
  return values.filter(createValueFilter(wanted));
}
