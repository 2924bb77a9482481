// DELETE: a whole handle, or single values of one.
import { RIGHT } from '../../src/handle/admin-data.js';
import { RESPONSE_CODE } from '../../src/handle/response-codes.js';
import { parseJavaInt } from './bad-input.js';
import type { Call, World } from './call.js';
import { type Reply, refuse, succeed } from './reply.js';
import { neededForRemoving } from './write.js';

/** Login comes before existence here, and a foreign prefix is "not found" (recordings "delete: …"). */
export function removeHandle({ handle, parameters, identity }: Call, { store, rights }: World): Reply {
  const indexes = parameters.getAll('index').map(parseJavaInt);
  if (identity === undefined) return refuse(RESPONSE_CODE.authenticationNeeded, { handle });
  const record = handle === '' ? undefined : store.get(handle);
  if (record === undefined) return refuse(RESPONSE_CODE.handleNotFound, { handle });
  const removed = record.filter(({ index }) => indexes.includes(index));
  if (removed.length < new Set(indexes).size) return refuse(RESPONSE_CODE.valuesNotFound, { handle });
  const isWhole = indexes.length === 0;
  const needed = isWhole ? RIGHT.deleteHandle : neededForRemoving(removed);
  if ((rights.on(record, identity) & needed) !== needed) {
    return refuse(RESPONSE_CODE.invalidAdmin, { handle });
  }
  if (isWhole) store.delete(handle);
  else
    store.set(
      handle,
      record.filter((value) => !removed.includes(value)),
    );
  return succeed({ handle });
}
