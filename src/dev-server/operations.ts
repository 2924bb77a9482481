// GET, DELETE and list requests.
import { RIGHT } from '../handle/value-data.js';
import { RESPONSE_CODE } from '../handle/outcome.js';
import { isPublic, createValueFilter } from '../handle/value.js';
import { type DemoCall, type DemoReply, type World, notHere, refuse, succeed } from './reply.js';
import { isOn } from './respond.js';
import { prefixHandle } from './store.js';
import { type StoredValue, valueToJson } from './value.js';
import { neededForRemoving } from './write.js';
import { parseJavaInt } from './bad-input.js';

/** Answers a resolution. If no value remains, the response is HTTP 200 with code 200. */
export function readHandle(call: DemoCall, world: World): DemoReply {
  const { handle, parameters } = call;
  const indexes = parameters.getAll('index').map(parseJavaInt);
  if (!world.store.isHomed(handle)) return notHere(handle);
  const record = world.store.get(handle);
  if (record === undefined) return refuse(RESPONSE_CODE.handleNotFound, { handle });
  const wanted = record.filter(createValueFilter({ indexes, types: parameters.getAll('type') }));
  if (isPublicOnly(call)) return answer(handle, wanted.filter(isPublic));
  return hiddenRefusal({ call, world, record, wanted }) ?? answer(handle, wanted);
}

function isPublicOnly({ parameters, identity }: DemoCall): boolean {
  const given = parameters.get('publicOnly');
  return given === null ? identity === undefined : isOn(given);
}

function answer(handle: string, values: StoredValue[]): DemoReply {
  if (values.length > 0) return succeed({ handle, values: values.map(valueToJson) });
  return { status: 200, json: { responseCode: RESPONSE_CODE.valuesNotFound, values: [], handle } };
}

/** Returns a refusal for the whole request, determined by the first hidden value. */
function hiddenRefusal(question: {
  call: DemoCall;
  world: World;
  record: StoredValue[];
  wanted: StoredValue[];
}): DemoReply | undefined {
  const { call, world, record, wanted } = question;
  const hidden = wanted.find((value) => !isPublic(value));
  if (hidden === undefined) return undefined;
  const { handle, identity } = call;
  if (!hidden.permissions.startsWith('1')) {
    return refuse(RESPONSE_CODE.insufficientPermissions, { handle });
  }
  if (identity === undefined) return refuse(RESPONSE_CODE.authenticationNeeded, { handle });
  const mayRead = (world.rights.on(record, identity) & RIGHT.readValue) !== 0;
  return mayRead ? undefined : refuse(RESPONSE_CODE.invalidAdmin, { handle });
}

/**
 * Removes a handle or values. The login is checked before existence, and a foreign prefix is "not found"
 * (recordings "delete: …").
 */
export function removeHandle(
  { handle, parameters, identity }: DemoCall,
  { store, rights }: World,
): DemoReply {
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

/** Lists the handles of `prefix`: one page if page and pageSize are set, else all, without echoing either. */
export function listHandles({ parameters, identity }: DemoCall, { store, rights }: World): DemoReply {
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

/** Lists the prefixes of this server for server administrators. */
export function listPrefixes({ identity }: DemoCall, { store, rights }: World): DemoReply {
  if (identity === undefined) return refuse(RESPONSE_CODE.authenticationNeeded);
  if (!rights.isServerAdmin(identity)) return refuse(RESPONSE_CODE.invalidAdmin);
  const { prefixes } = store;
  return succeed({ totalCount: String(prefixes.length), prefixes });
}
