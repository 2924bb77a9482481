// Tells the cache what a Handle server has answered a caller past it, so that no reader gets an older state after it.
import type { HandleLock } from '../coordination/key-lock.js';
import { ServiceError } from '../errors.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import type { Resolver } from '../resolver/resolver.js';
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

/** A caller whose condition fails has mostly got its ETag from the cache, and reads the record there again. */
export function createLearningLock(lock: HandleLock, recheck: Resolver<unknown>['recheck']): HandleLock {
  return async function lockAndLearn(handle, work) {
    try {
      return await lock(handle, work);
    } catch (failure) {
      if (failure instanceof ServiceError && failure.code === 'CONDITION_FAILED') await recheck(handle);
      throw failure;
    }
  };
}
