// `If-Match` and `If-None-Match` of PUT and DELETE on the record interface: under the lock of the handle, over all
// instances. Writes without a condition never come here, and wait for no lock.
import type { IncomingMessage } from 'node:http';
import type { Request } from 'express';
import { ServiceError } from '../errors.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import type { Selection } from '../handle/value.js';
import { selectValues } from '../handle/record.js';
import { type RecordClient, type RecordRead, readVisible } from '../upstream/record-client.js';
import type { Said } from '../http/body.js';
import { evaluatePreconditions } from '../http/preconditions.js';
import { readSaid, tagOfRecord } from './record-etag.js';

export interface ConditionalDeps {
  records: Pick<RecordClient, 'get'>;
  /** Reads, and does the work under the lock of the handle while what was read still holds. */
  lock: <S, T>(
    handle: string,
    locked: { holder: string; read: () => Promise<S>; work: (state: S) => Promise<T> },
  ) => Promise<T>;
}

export interface Conditional {
  handle: string;
  /** The values the write is about; empty: the whole record. */
  selection: Selection;
}

/**
 * Does the write if the condition holds for the record as this caller sees it now.
 *
 * @throws ServiceError CONDITION_FAILED, BAD_REQUEST, BUSY; with the answer of a Handle server that refuses to show
 * the record; what the write throws
 */
export function whileConditionHolds<T>(
  { records, lock }: ConditionalDeps,
  req: Request,
  { handle, selection }: Conditional,
  write: () => Promise<T>,
): Promise<T> {
  const { authorization } = req.headers;
  const read = async (): Promise<void> => {
    const answer = await readVisible(records, handle, { authorization, authoritative: true });
    assertCondition(req, stateOf(answer, { handle, selection }));
  };
  return lock(handle, { holder: authorization ?? '', read, work: write });
}

interface State {
  exists: boolean;
  /** Of the plain answer and of the indented one, whichever the client has. */
  etags: string[];
}

const PLAIN = { pretty: false };
const PRETTY = { pretty: true };

function stateOf(answer: RecordRead, { handle, selection }: Conditional): State {
  if (answer.responseCode === RESPONSE_CODE.handleNotFound) return { exists: false, etags: [] };
  const said = answer.status === 200 ? readSaid(answer.body) : undefined;
  if (said === undefined) throw refused(answer);
  const etags = [PLAIN, PRETTY].map((format) => tagOfRecord(said, { handle, selection, format }));
  return { exists: hasSelected(said, selection), etags };
}

/** A wrong login is refused without Handle JSON (recording "create: wrong password"). */
function refused({ status, responseCode, members, retryAfter, challenge }: RecordRead): ServiceError {
  const { handle, ...others } = members;
  return new ServiceError('UPSTREAM_FAILED', {
    detail: 'it does not show the record',
    upstreamAnswer: {
      status: status === 200 ? 502 : status,
      members: responseCode === undefined ? { responseCode: RESPONSE_CODE.authenticationFailed } : others,
      namesHandle: handle !== undefined,
      ...(retryAfter !== undefined && { retryAfter }),
      ...(challenge !== undefined && { challenge }),
    },
  });
}

/** Of values that are selected by index one has to be there; a record without values exists all the same. */
const hasSelected = ({ kind, values }: Said, selection: Selection): boolean =>
  selection.indexes.length === 0 || (kind === 'found' && selectValues(values, selection) !== undefined);

/** @throws ServiceError CONDITION_FAILED; BAD_REQUEST for what is no list of tags */
function assertCondition({ method, headers }: Request, state: State): void {
  const conditions = {
    'if-match': withoutCoding(headers['if-match']),
    'if-none-match': withoutCoding(headers['if-none-match']),
  };
  if (evaluatePreconditions(conditions, { method, ...state }) !== 'failed') return;
  const detail = state.exists ? 'the record is another one now' : 'there is no such record';
  throw new ServiceError('CONDITION_FAILED', { detail });
}

/** The compressed form of an answer has a tag of its own (see `etagOf`). */
const withoutCoding = (header: string | undefined): string | undefined => header?.replaceAll('-gz"', '"');

export const isConditional = ({ headers }: IncomingMessage): boolean =>
  headers['if-match'] !== undefined || headers['if-none-match'] !== undefined;
