// POST to a prefix: creates a handle under a name of its own.
import { randomUUID } from 'node:crypto';
import type { Request } from 'express';
import { ServiceError } from '../errors.js';
import { contextOf } from '../http/context.js';
import { readParameters } from '../http/query.js';
import { requireJson, withJson } from './body.js';
import { demandConditions } from './conditions.js';
import type { Call, V2Deps } from './deps.js';
import { askOf, readGenerator, uuidOf } from './names.js';
import { makeRecord } from './new-record.js';
import { readInput } from './schema.js';
import type { CollectionTarget } from './target.js';
import { createRecord, holds } from './write.js';
import { sendWritten } from './write-response.js';

/** Two equal random UUIDs are out of the question; a server that says so five times is not believed. */
const MAX_NAMES = 5;

type Mint = (call: Call, target: CollectionTarget) => Promise<void>;

type Write = Parameters<typeof holds>[1];

/**
 * The name is made here and written with overwrite=false, so that a time-out can be followed up under
 * that name. A client that repeats a POST gets the same handle: surely when it sends the same
 * `Idempotency-Key`, and else when the first ended without an answer.
 */
export function createMint(deps: V2Deps): Mint {
  async function createNamed(
    call: Call,
    { prefix, nameOf, json }: { prefix: string; nameOf: (uuid: string) => string; json: unknown },
  ): Promise<void> {
    const { req, res, login } = call;
    const { query } = contextOf(res).target;
    const inputs = readInput(json);
    // The conditions are about the collection, which exists and has no tag.
    demandConditions(req, []);
    const values = await makeRecord(deps, { inputs, handle: `${prefix}/`, login, current: [] });
    const key = keyOf(req);
    const { identity } = login;
    if (key !== undefined) {
      const handle = nameOf(uuidOf([`${identity.index}:${identity.handle}`, key, prefix]));
      await createOnce(deps, call, { login, handle, values });
    } else {
      const ask = askOf({ identity, prefix, query, values });
      await createAnew(deps, call, { ask, values, newHandle: () => nameOf(randomUUID()) });
    }
  }

  return async function mint(call, { prefix }) {
    const { req, res } = call;
    contextOf(res).result = 'write';
    requireJson(req);
    const nameOf = readGenerator(prefix, readParameters(contextOf(res).target.query));
    await withJson(deps, req, (json) => createNamed(call, { prefix, nameOf, json }));
  };
}

/** The same key may have made the handle before; it has to be for the same values. */
async function createOnce(deps: V2Deps, call: Call, write: Write): Promise<void> {
  const { handle, values } = write;
  contextOf(call.res).handle = handle;
  const isThere = (await createRecord(deps, write)) === 'exists';
  if (isThere && !(await holds(deps, write))) {
    const detail = `this Idempotency-Key has made ${handle}, which holds other values`;
    throw new ServiceError('CONDITION_FAILED', { detail });
  }
  await sendWritten(deps, call, { handle, isNew: true, values });
}

interface Order {
  ask: string;
  values: Write['values'];
  newHandle: () => string;
}

/** Under the name of an earlier POST of which its client never heard, else under a new one. */
async function createAnew(deps: V2Deps, call: Call, { ask, values, newHandle }: Order): Promise<void> {
  const { login, res } = call;
  let left = await deps.unclaimed.claim(ask);
  for (let names = 0; names < MAX_NAMES; names++) {
    const handle = left ?? newHandle();
    const write = { login, handle, values };
    contextOf(res).handle = handle;
    const isDone = await unlessUnheard(deps, call, { ask, handle, isLeft: left !== undefined }, async () => {
      const outcome = await createRecord(deps, write);
      const isOurs = outcome === 'created' || (left !== undefined && (await holds(deps, write)));
      if (isOurs) await sendWritten(deps, call, { handle, isNew: true, values });
      return isOurs;
    });
    if (isDone) return;
    left = undefined;
  }
  throw new ServiceError('UPSTREAM_FAILED', { detail: `${MAX_NAMES} new names in a row exist already` });
}

/** Leaves the name to the next who asks for the same when the client goes, or is told of a failure. */
async function unlessUnheard(
  { unclaimed, onUnexpected }: V2Deps,
  { res }: Call,
  { ask, handle, isLeft }: { ask: string; handle: string; isLeft: boolean },
  work: () => Promise<boolean>,
): Promise<boolean> {
  let isKept = false;
  const leave = async (): Promise<void> => {
    if (isKept) return;
    isKept = true;
    await unclaimed.leave(ask, handle);
  };
  const onClose = (): void => {
    // A client that closed its connection while it waited cannot be told from one that only sends no more.
    const mayBeGone = !res.writableFinished || res.req.socket.readableEnded;
    if (mayBeGone) leave().catch(onUnexpected);
  };
  if (res.destroyed) onClose();
  else res.once('close', onClose);
  try {
    const isDone = await work();
    if (!isDone) res.off('close', onClose);
    return isDone;
  } catch (failure) {
    if (isLeft || isUnknown(failure)) await leave();
    throw failure;
  }
}

/** A refusal is an answer: nothing was created. */
const isUnknown = (failure: unknown): boolean => !(failure instanceof ServiceError) || failure.status >= 500;

const keyOf = ({ headers }: Request): string | undefined => {
  const key = headers['idempotency-key'];
  return key === undefined ? undefined : String(key);
};
