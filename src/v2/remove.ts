// DELETE of a handle: refused unless deletion is on, as on the record interface.
import { ServiceError } from '../errors.js';
import { contextOf } from '../http/context.js';
import { demandConditions } from './conditions.js';
import type { Call, V2Deps } from './deps.js';
import { holderOf } from './login.js';
import { readAs } from './record.js';
import { PRIVATE, send } from './send.js';
import type { HandleTarget } from './target.js';
import { runFenced } from './write.js';

type Remove = (call: Call, target: HandleTarget) => Promise<void>;

/** In this order: a handle that does not exist is 412 or 404, before it may be 403. */
export function createRemove(deps: V2Deps): Remove {
  return async function remove(call, { handle }) {
    const { res, login } = call;
    contextOf(res).result = 'write';
    const read = (): Promise<void> => demandPresence(deps, call, handle);
    if (!deps.mayDelete(handle)) {
      await read();
      throw new ServiceError('V2_NO_DELETE', { detail: 'the operator of this service has turned it off' });
    }
    const { authorization } = login;
    const work = () => runFenced(deps, handle, [() => deps.records.remove(handle, { authorization })]);
    await deps.lock(handle, { holder: holderOf(login), read, work });
    send(res, { status: 204, headers: PRIVATE });
  };
}

async function demandPresence({ records }: V2Deps, { req, login }: Call, handle: string): Promise<void> {
  const record = await readAs(records, login, { handle, authoritative: true });
  demandConditions(req, record?.values);
  if (record === undefined) throw new ServiceError('V2_NOT_FOUND');
}
