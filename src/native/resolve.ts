// Answers a resolution from the cache or the upstream, by the same resolver and policy as every other interface.
import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import type { Entry } from '../cache/entry.js';
import { ServiceError } from '../errors.js';
import { toText } from '../handle/bytes.js';
import { MAX_HANDLE_BYTES } from '../handle/handle.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import type { HandleValue, Selection } from '../handle/value.js';
import type { Result } from '../http/context.js';
import { resultOf } from '../record/record-reply.js';
import type { FromEntry, Resolution, StaleReason } from '../resolver/resolution.js';
import type { ResolveOptions } from '../resolver/resolver.js';
import type { Caller, LimitMiss } from '../upstream/caller.js';
import type { RecordRead } from '../upstream/record-client.js';
import { OP_FLAG } from './codec/message.js';
import type { Resolution as Question } from './codec/request.js';
import { type Outcome, refusal } from './outcome.js';
import { selectValues } from './select-values.js';

export interface ResolveDeps {
  /** A fresh entry in memory. */
  fromMemory: (handle: string) => FromEntry | undefined;
  resolve: (handle: string, options: ResolveOptions) => Promise<Resolution>;
  /** Reads all that matches, without credentials: the server refuses when one of the matches is private. */
  readAll: (handle: string, options: Selection & { authoritative: boolean }) => Promise<RecordRead>;
  /** Reads the public values at the responsible server, without following its referral; undefined where none is followed. */
  readUnreferred: ReadPublic | undefined;
  limitMiss: LimitMiss;
  onStale: (reason: StaleReason) => void;
}

type ReadPublic = (handle: string, options: { authoritative: boolean }) => Promise<RecordRead>;

/**
 * Judges a request that memory does not answer, before the Handle server is asked; undefined for an unknown caller.
 *
 * @throws ServiceError RATE_LIMITED, TRAFFIC_REFUSED
 */
export type AdmitMessage = (handle: string) => Caller | undefined | Promise<Caller>;

interface Asked extends Question {
  /** The handle as text. */
  name: string;
  authoritative: boolean;
  /** Servers that only a referral leads to may be asked. */
  recursive: boolean;
  doNotRefer: boolean;
  admit: AdmitMessage | undefined;
}

/** Rejects with the failure of the upstream. */
export type Resolve = (
  question: Question,
  asked: { flags: number; admit?: AdmitMessage | undefined },
) => Outcome | Promise<Outcome>;

export function createResolve(deps: ResolveDeps): Resolve {
  return function resolve(question, { flags, admit }) {
    const { handle } = question;
    if (!canExist(handle)) return notFound('local');
    const asked: Asked = {
      ...question,
      name: handle.toString('utf8'),
      authoritative: (flags & OP_FLAG.authoritative) !== 0,
      recursive: (flags & OP_FLAG.recursive) !== 0,
      doNotRefer: (flags & OP_FLAG.doNotRefer) !== 0,
      admit,
    };
    if ((flags & OP_FLAG.publicOnly) === 0) return resolveAll(asked, deps);
    const found = asked.authoritative ? undefined : deps.fromMemory(asked.name);
    return found === undefined ? load(asked, deps) : outcomeOf(found, asked, deps);
  };
}

async function load(asked: Asked, deps: ResolveDeps): Promise<Outcome> {
  const { name, authoritative } = asked;
  const caller = await asked.admit?.(name);
  if (!asked.recursive) {
    const elsewhere = await readElsewhere(asked, caller, deps);
    if (elsewhere !== undefined) return elsewhere;
  }
  return outcomeOf(await deps.resolve(name, { authoritative, caller }), asked, deps);
}

/** The answer of a responsible server that has not the handle's prefix. Its failure is that of the read that follows. */
async function readElsewhere(
  asked: Asked,
  caller: Caller | undefined,
  { readUnreferred, limitMiss }: ResolveDeps,
): Promise<Outcome | undefined> {
  if (readUnreferred === undefined) return undefined;
  const read = () => readUnreferred(asked.name, asked).catch(exceptServiceError);
  const answer = await limitMiss(caller, read, () => undefined);
  return answer !== undefined && ELSEWHERE.includes(answer.responseCode)
    ? refused(answer.members, asked)
    : undefined;
}

function exceptServiceError(error: unknown): undefined {
  if (!(error instanceof ServiceError)) throw error;
}

/** Without these bounds a Handle server says the same. Clients read no longer handle, and its JSON has no other bytes. */
const canExist = (handle: Buffer): boolean =>
  handle.length > 0 && handle.length <= MAX_HANDLE_BYTES && !handle.includes(0) && isUtf8(handle);

const notFound = (result: Result, text = ''): Outcome => refusal(RESPONSE_CODE.handleNotFound, result, text);

function outcomeOf(resolution: Resolution, asked: Asked, { onStale }: Pick<ResolveDeps, 'onStale'>): Outcome {
  const result = resultOf(resolution, asked);
  if (resolution.kind === 'refused') return refused(resolution.refused.members, asked);
  const { entry, stale, from } = resolution;
  if (stale !== undefined) onStale(stale);
  const outcome =
    entry.kind === 'not-found' ? notFound(result, entry.message) : record(valuesOf(entry), asked, result);
  return result === 'hit' && from === 'memory' ? { ...outcome, entry } : outcome;
}

const valuesOf = ({ kind, values }: Entry): HandleValue[] =>
  kind === 'found' ? (JSON.parse(toText(values)) as HandleValue[]) : [];

function record(values: readonly HandleValue[], asked: Asked, result: Result): Outcome {
  const selected = selectValues(values, asked);
  if (selected.length === 0) return refusal(RESPONSE_CODE.valuesNotFound, result);
  const { handle } = asked;
  return {
    responseCode: RESPONSE_CODE.success,
    body: { kind: 'record', handle, values: selected },
    result,
  };
}

/** Private values are wanted too. One private match makes the whole answer a challenge. */
async function resolveAll(asked: Asked, deps: ResolveDeps): Promise<Outcome> {
  const caller = await asked.admit?.(asked.name);
  const isByIndex = asked.indexes.length > 0 && asked.types.length === 0;
  if (isByIndex) {
    const resolution = await deps.resolve(asked.name, { authoritative: asked.authoritative, caller });
    if (resolution.kind === 'entry' && hasAll(valuesOf(resolution.entry), asked.indexes)) {
      return outcomeOf(resolution, asked, deps);
    }
  }
  const read = await deps.limitMiss(caller, () => deps.readAll(asked.name, asked), isUnknown);
  const { values, responseCode, members } = read;
  if (values !== undefined) return record(values, asked, 'bypass');
  if (isUnknown(read)) return notFound('bypass');
  // Over https the login filter answers before the server does.
  if (responseCode === RESPONSE_CODE.authenticationNeeded || read.status === 401) return challenge();
  return refused(members, asked);
}

const isUnknown = ({ responseCode }: RecordRead): boolean => responseCode === RESPONSE_CODE.handleNotFound;

/** An index stands for at most one value: when all are public, no private value matches. */
function hasAll(values: readonly HandleValue[], indexes: readonly number[]): boolean {
  const known = new Set(values.map(({ index }) => index));
  return indexes.every((index) => known.has(index));
}

const NONCE_BYTES = 16;

const challenge = (): Outcome => ({
  responseCode: RESPONSE_CODE.authenticationNeeded,
  body: { kind: 'challenge', nonce: randomBytes(NONCE_BYTES) },
  result: 'bypass',
});

const REFERRALS: readonly unknown[] = [RESPONSE_CODE.serviceReferral, RESPONSE_CODE.prefixReferral];
const ELSEWHERE: readonly unknown[] = [...REFERRALS, RESPONSE_CODE.notResponsible];
/** What a server may say of a handle. Everything else is trouble, for which a client turns to another site. */
const FINAL: readonly unknown[] = [RESPONSE_CODE.invalidHandle, RESPONSE_CODE.notResponsible];

function refused(members: Record<string, unknown>, { doNotRefer }: Asked): Outcome {
  const { responseCode, message, values } = members;
  const text = typeof message === 'string' ? message : '';
  if (REFERRALS.includes(responseCode)) {
    if (doNotRefer) return notFound('refused');
    const listed = Array.isArray(values) ? (values as HandleValue[]) : [];
    // The server leaves the handle empty (recording "derived prefix (prefix referral 303)").
    const body = { kind: 'referral' as const, handle: Buffer.alloc(0), values: listed };
    return { responseCode: responseCode as number, body, result: 'refused' };
  }
  const isFinal = FINAL.includes(responseCode);
  return refusal(isFinal ? (responseCode as number) : RESPONSE_CODE.error, 'refused', text);
}
