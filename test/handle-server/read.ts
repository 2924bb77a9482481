// GET of a handle: which values are wanted, and which of them this caller may see.
import { RIGHT } from '../../src/handle/admin-data.js';
import { RESPONSE_CODE } from '../../src/handle/response-codes.js';
import { isPublic, selects } from '../../src/handle/value.js';
import { parseJavaInt } from './bad-input.js';
import type { Call, World } from './call.js';
import { type Reply, notHere, refuse, succeed } from './reply.js';
import { isOn } from './target.js';
import { type StoredValue, valueToJson } from './value.js';

/** Answers a resolution; a record of which nothing is left is HTTP 200 with code 200. */
export function readHandle(call: Call, world: World): Reply {
  const { handle, parameters } = call;
  const indexes = parameters.getAll('index').map(parseJavaInt);
  if (!world.store.isHomed(handle)) return notHere(handle);
  const record = world.store.get(handle);
  if (record === undefined) return refuse(RESPONSE_CODE.handleNotFound, { handle });
  const wanted = record.filter(selects({ indexes, types: parameters.getAll('type') }));
  if (isPublicOnly(call)) return answer(handle, wanted.filter(isPublic));
  return hiddenRefusal({ call, world, record, wanted }) ?? answer(handle, wanted);
}

function isPublicOnly({ parameters, identity }: Call): boolean {
  const given = parameters.get('publicOnly');
  return given === null ? identity === undefined : isOn(given);
}

function answer(handle: string, values: StoredValue[]): Reply {
  if (values.length > 0) return succeed({ handle, values: values.map(valueToJson) });
  return { status: 200, json: { responseCode: RESPONSE_CODE.valuesNotFound, values: [], handle } };
}

/** The first hidden value decides for the whole request. */
function hiddenRefusal(question: {
  call: Call;
  world: World;
  record: StoredValue[];
  wanted: StoredValue[];
}): Reply | undefined {
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
