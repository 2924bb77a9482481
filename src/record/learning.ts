// Tells the cache what a Handle server has answered a caller past it, so that no reader gets an older state after it.
import type { IncomingMessage } from 'node:http';
import type { Coordination } from '../coordination/coordination.js';
import { type HandleLock, createHandleLock } from '../coordination/key-lock.js';
import { LockPlaces } from '../coordination/lock-places.js';
import { ServiceError } from '../errors.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import { identityOf } from '../http/identity.js';
import type { Resolver } from '../resolver/resolver.js';
import type { Client } from '../server/client-address.js';
import type { RecordClient } from '../upstream/record-client.js';

export type Learn = Resolver<unknown>['learn'];

export function createLearningRecords(records: RecordClient, learn: Learn): RecordClient {
  return {
    ...records,
    async get(handle, options) {
      const answer = await records.get(handle, options);
      if (answer.responseCode === RESPONSE_CODE.handleNotFound) await learn(handle, { exists: false });
      return answer;
    },
    async put(handle, options) {
      const answer = await records.put(handle, options);
      if (answer.responseCode === RESPONSE_CODE.handleExists) await learn(handle, { exists: true });
      return answer;
    },
  };
}

interface LockParts {
  coordination: Pick<Coordination, 'lock'>;
  resolver: Pick<Resolver<unknown>, 'keyOf' | 'recheck'>;
  findClient: (req: IncomingMessage) => Client;
}

/** A caller whose condition fails has mostly got its ETag from the cache, and reads the record there again. */
export function createLearningLock({ coordination, resolver, findClient }: LockParts): HandleLock {
  const lock = createHandleLock({
    lock: coordination.lock,
    places: new LockPlaces(() => performance.now()),
    // A writer is its login, and without one its network.
    writerOf(req) {
      const { network } = findClient(req);
      return { client: identityOf(req.headers.authorization) ?? network, network };
    },
    keyOf: (handle) => resolver.keyOf(handle),
  });
  return async function lockAndLearn(handle, work) {
    try {
      return await lock(handle, work);
    } catch (failure) {
      if (failure instanceof ServiceError && failure.code === 'CONDITION_FAILED')
        await resolver.recheck(handle);
      throw failure;
    }
  };
}
