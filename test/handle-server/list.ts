// The collection: the handles of a prefix, and the prefixes of the server.
import { RIGHT } from '../../src/handle/admin-data.js';
import { RESPONSE_CODE } from '../../src/handle/response-codes.js';
import { parseJavaInt } from './bad-input.js';
import type { Call, World } from './call.js';
import { type Reply, notHere, refuse, succeed } from './reply.js';
import { prefixHandle } from './store.js';

/** Lists the handles of `prefix`; without page *and* pageSize all of them, and then neither is echoed. */
export function listHandles({ parameters, identity }: Call, { store, rights }: World): Reply {
  const prefix = parameters.get('prefix') ?? '';
  const [page, pageSize] = ['page', 'pageSize'].map((name) => parseJavaInt(parameters.get(name) ?? '-1'));
  if (!store.prefixes.includes(prefixHandle(prefix))) return notHere(prefix);
  if (identity === undefined) return refuse(RESPONSE_CODE.authenticationNeeded, { handle: prefix });
  const granted = rights.on(store.get(prefixHandle(prefix)) ?? [], identity);
  if ((granted & RIGHT.listHandles) === 0) return refuse(RESPONSE_CODE.invalidAdmin, { handle: prefix });
  const handles = store.list(prefix);
  const totalCount = String(handles.length);
  if (page === undefined || pageSize === undefined || page < 0 || pageSize < 0) {
    return succeed({ prefix, totalCount, handles });
  }
  const slice = handles.slice(page * pageSize, (page + 1) * pageSize);
  return succeed({ prefix, totalCount, page, pageSize, handles: slice });
}

/** The prefixes that live here, for server administrators. */
export function listPrefixes({ identity }: Call, { store, rights }: World): Reply {
  if (identity === undefined) return refuse(RESPONSE_CODE.authenticationNeeded);
  if (!rights.isServerAdmin(identity)) return refuse(RESPONSE_CODE.invalidAdmin);
  const { prefixes } = store;
  return succeed({ totalCount: String(prefixes.length), prefixes });
}
