// Reads and writes whole records for one caller, with that caller's credentials; nothing of it is shared.
import { RESPONSE_CODE } from '../handle/response-codes.js';
import type { HandleValue } from '../handle/value.js';
import { type RecordAnswer, readValues } from './record-answer.js';
import { type SenderOptions, createSender } from './record-sender.js';

export interface ReadOptions {
  authorization?: string | undefined;
  authoritative?: boolean;
  /** Only what everybody may read: for callers who may not read all of a record. */
  publicOnly?: boolean;
}

export interface WriteOptions {
  authorization: string;
  values: readonly HandleValue[];
  /** False: only where nothing stands yet. The server looks and writes in one step. */
  overwrite: boolean;
}

export interface ListOptions {
  authorization: string;
  /** From 0. Without both numbers a server gives everything. */
  page?: number;
  pageSize?: number;
}

/** An answer to a read: the values, where it shows any. */
export interface RecordRead extends RecordAnswer {
  values: HandleValue[] | undefined;
}

/** Refusals (401, 403, 404, 409, 5xx in Handle JSON) are answers; what is no answer at all is thrown. */
export interface RecordClient {
  get: (handle: string, options: ReadOptions) => Promise<RecordRead>;
  /** Creates or replaces a record. */
  put: (handle: string, options: WriteOptions) => Promise<RecordAnswer>;
  /** Adds or replaces these values of a record that exists. */
  putValues: (handle: string, options: WriteOptions) => Promise<RecordAnswer>;
  /** Removes a record, or some of its values. */
  remove: (
    handle: string,
    options: { authorization: string; indexes?: readonly number[] },
  ) => Promise<RecordAnswer>;
  list: (prefix: string, options: ListOptions) => Promise<RecordAnswer>;
}

export function createRecordClient(options: SenderOptions): RecordClient {
  const { read, write } = createSender(options);

  const putWith = (handle: string, { authorization, values }: WriteOptions, query: string) =>
    write({ method: 'PUT', handle, query, authorization, body: JSON.stringify({ handle, values }) });

  return {
    async get(handle, { authorization, authoritative = false, publicOnly = false }) {
      const flags = [...(authoritative ? ['auth=true'] : []), ...(publicOnly ? ['publicOnly=true'] : [])];
      const answer = await read({ handle, query: queryOf(flags), authorization });
      return { ...answer, values: readValues(answer) };
    },
    put: (handle, given) => putWith(handle, given, `?overwrite=${given.overwrite}`),
    putValues: (handle, given) => putWith(handle, given, `?index=various&overwrite=${given.overwrite}`),
    remove: (handle, { authorization, indexes = [] }) =>
      write({
        method: 'DELETE',
        handle,
        query: queryOf(indexes.map((index) => `index=${index}`)),
        authorization,
      }),
    list: (prefix, { authorization, page, pageSize }) =>
      read({
        query: queryOf([
          `prefix=${encodeURIComponent(prefix)}`,
          ...(page === undefined || pageSize === undefined ? [] : [`page=${page}`, `pageSize=${pageSize}`]),
        ]),
        authorization,
      }),
  };
}

/**
 * Reads what the caller may see of a record. A server refuses the whole question when one value may not be seen;
 * then the public ones are asked for.
 */
export async function readVisible(
  records: Pick<RecordClient, 'get'>,
  handle: string,
  options: Omit<ReadOptions, 'publicOnly'>,
): Promise<RecordRead & { isFull: boolean }> {
  const whole = await records.get(handle, options);
  if (!hidesValues(whole)) return { ...whole, isFull: true };
  return { ...(await records.get(handle, { ...options, publicOnly: true })), isFull: false };
}

const hidesValues = ({ status, responseCode }: RecordRead): boolean =>
  status === 403 &&
  (responseCode === RESPONSE_CODE.invalidAdmin || responseCode === RESPONSE_CODE.insufficientPermissions);

const queryOf = (parts: readonly string[]): string => (parts.length === 0 ? '' : `?${parts.join('&')}`);
