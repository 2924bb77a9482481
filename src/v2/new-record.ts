// What a body makes of a record: the values to send, with an administrator the caller is among.
import type { HandleValue, ValueReference } from '../handle/value.js';
import type { V2Deps } from './deps.js';
import type { Login } from './login.js';
import { requireOwnership } from './ownership.js';
import { publicValues } from './public-record.js';
import { toUpstream } from './to-upstream.js';
import type { V2Input } from './value.js';

export interface NewRecord {
  inputs: readonly V2Input[];
  handle: string;
  login: Login;
  current: readonly HandleValue[];
}

/** @throws ServiceError V2_NOT_OWNED when the caller could not change the record afterwards */
export async function makeRecord(
  { settings, resolve }: Pick<V2Deps, 'settings' | 'resolve'>,
  { inputs, handle, login, current }: NewRecord,
): Promise<HandleValue[]> {
  const { index, permissions } = settings.admin;
  const prefix = handle.slice(0, handle.indexOf('/'));
  const automatic = automaticAdmin(settings.admin, prefix, login.identity);
  const values = toUpstream(inputs, { automaticAdmin: { index, admin: automatic, permissions }, current });
  const question = { handle, values, current, identity: login.identity, automatic };
  await requireOwnership(question, (group) => readGroup({ resolve }, group));
  return values;
}

function automaticAdmin(
  { handle, adminIndex }: { handle: string; adminIndex: number },
  prefix: string,
  identity: ValueReference,
): ValueReference {
  if (handle === '{identity}') return identity;
  const filled = handle.replaceAll('{prefix}', prefix).replaceAll('{identity}', identity.handle);
  return { handle: filled, index: adminIndex };
}

/** Prefix handles mostly live on another server: what is not here is not known, rather than not there. */
async function readGroup(
  deps: Pick<V2Deps, 'resolve'>,
  handle: string,
): Promise<readonly HandleValue[] | undefined> {
  const values = await publicValues(deps, handle).catch(() => undefined);
  return values ?? (handle.startsWith('0.NA/') ? undefined : []);
}
