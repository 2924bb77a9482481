// Resolves handles from the cache or the upstream, by the same resolver and policy as every other interface.
import { type NativeOutcome, refusal } from './reply.js';
import { OP_FLAG, type ResolutionRequest as Question } from './codec.js';
import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { type HandleRef, MAX_HANDLE_BYTES } from '../handle/handle.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import { type HandleValue, type Selection, createValueFilter } from '../handle/value.js';
import type { Result } from '../http/context.js';
import { resultOf } from '../record/record-reply.js';
import { valuesOf } from '../resolver/parsed-records.js';
import type { Resolution } from '../resolver/resolution.js';
import type { ResolverRead, Resolver } from '../resolver/resolver.js';
import type { Caller } from '../upstream/caller.js';
import type { OriginOf } from '../write/origin-record.js';

export interface ResolveParts {
  resolver: Pick<Resolver<unknown>, 'read'>;
  originOf: OriginOf;
}

interface ResolveDeps extends ResolveParts {
  countStale: Context['metrics']['countStale'];
}

/**
 * Applies the traffic rules to a request that misses in memory, before the upstream request.
 *
 * @throws ServiceError RATE_LIMITED, TRAFFIC_REFUSED
 */
export type AdmitMessage = (handle: HandleRef) => Caller | undefined | Promise<Caller>;

interface Asked extends Selection {
  handle: HandleRef;
  /** Raw bytes of the handle, for the answer. */
  spelling: Buffer;
  authoritative: boolean;
  /** Whether the load must not follow referrals. False without `upstream.followReferrals`, where all loads are alike. */
  isUnreferred: boolean;
  doNotRefer: boolean;
  admit: ResolverRead['admit'];
}

/** Resolves a handle. Throws or rejects with the failure of the upstream. */
export type Resolve = (
  question: Question,
  asked: { handle: HandleRef; flags: number; admit?: AdmitMessage | undefined },
) => NativeOutcome | Promise<NativeOutcome>;

export function createResolve(
  { upstream: { followReferrals } }: Pick<Config, 'upstream'>,
  { metrics: { countStale } }: Context,
  parts: ResolveParts,
): Resolve {
  const deps: ResolveDeps = { ...parts, countStale };
  return function resolve({ handle: spelling, ...selection }, { handle, flags, admit }) {
    if (!canExist(spelling)) return notFound('local');
    // The traffic rules see a request only once.
    let admitting: ReturnType<AdmitMessage>;
    const asked: Asked = {
      ...selection,
      handle,
      spelling,
      authoritative: (flags & OP_FLAG.authoritative) !== 0,
      isUnreferred: (flags & OP_FLAG.recursive) === 0 && followReferrals,
      doNotRefer: (flags & OP_FLAG.doNotRefer) !== 0,
      admit: () => (admitting ??= admit?.(handle)),
    };
    if ((flags & OP_FLAG.publicOnly) === 0) return resolveAll(asked, deps);
    const found = deps.resolver.read(handle, asked);
    return found instanceof Promise
      ? found.then((resolution) => outcomeOf(resolution, asked, deps))
      : outcomeOf(found, asked, deps);
  };
}

/** False for handles that cannot exist: clients reject longer ones, and the JSON of a server cannot carry other bytes. */
const canExist = (handle: Buffer): boolean =>
  handle.length > 0 && handle.length <= MAX_HANDLE_BYTES && !handle.includes(0) && isUtf8(handle);

const notFound = (result: Result, text = ''): NativeOutcome =>
  refusal(RESPONSE_CODE.handleNotFound, result, text);

function outcomeOf(resolution: Resolution, asked: Asked, { countStale }: ResolveDeps): NativeOutcome {
  const result = resultOf(resolution, asked);
  if (resolution.kind === 'refused') return refused(resolution.refused.members, asked);
  const { entry, stale, from } = resolution;
  if (stale !== undefined) countStale(stale);
  const outcome =
    entry.kind === 'not-found' ? notFound(result, entry.message) : record(valuesOf(entry), asked, result);
  return result === 'hit' && from === 'memory' ? { ...outcome, entry } : outcome;
}

function record(values: readonly HandleValue[], asked: Asked, result: Result): NativeOutcome {
  const selected = selectValues(values, asked);
  if (selected.length === 0) return refusal(RESPONSE_CODE.valuesNotFound, result);
  return {
    responseCode: RESPONSE_CODE.success,
    body: { kind: 'record', handle: asked.spelling, values: selected },
    result,
  };
}

/** Resolves private values too. A single private match makes the whole answer a challenge. */
async function resolveAll(asked: Asked, deps: ResolveDeps): Promise<NativeOutcome> {
  if (asked.indexes.length > 0 && asked.types.length === 0) {
    const resolution = await deps.resolver.read(asked.handle, asked);
    if (hasAllAsked(resolution, asked)) return outcomeOf(resolution, asked, deps);
  }
  return readWhole(asked, deps);
}

/** Reads all matches without credentials; the server refuses if one of them is private. */
async function readWhole(asked: Asked, { originOf }: ResolveDeps): Promise<NativeOutcome> {
  const caller = await asked.admit();
  const { handle, authoritative, indexes, types } = asked;
  const selection = { indexes, types };
  const origin = originOf(handle, { authorization: undefined, caller });
  const { values, status, responseCode, members } = await origin.get({
    publicOnly: false,
    authoritative,
    selection,
  });
  if (values !== undefined) return record(values, asked, 'bypass');
  if (responseCode === RESPONSE_CODE.handleNotFound) return notFound('bypass');
  // Over https the login filter of the server responds first.
  if (responseCode === RESPONSE_CODE.authenticationNeeded || status === 401) return challenge();
  return refused(members, asked);
}

/** Whether the record has all requested indexes. An index has at most one value, so then no private value matches. */
function hasAllAsked(resolution: Resolution, { indexes }: Asked): boolean {
  if (resolution.kind !== 'entry') return false;
  const known = new Set(valuesOf(resolution.entry).map(({ index }) => index));
  return indexes.every((index) => known.has(index));
}

const NONCE_BYTES = 16;

const challenge = (): NativeOutcome => ({
  responseCode: RESPONSE_CODE.authenticationNeeded,
  body: { kind: 'challenge', nonce: randomBytes(NONCE_BYTES) },
  result: 'bypass',
});

const REFERRALS: readonly unknown[] = [RESPONSE_CODE.serviceReferral, RESPONSE_CODE.prefixReferral];
/** Final response codes for a handle. Any other code is a failure, after which a client tries another site. */
const FINAL: readonly unknown[] = [RESPONSE_CODE.invalidHandle, RESPONSE_CODE.notResponsible];

function refused(members: Record<string, unknown>, { doNotRefer }: Asked): NativeOutcome {
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

/** An empty type, or a dot alone, selects nothing (recordings "type=. (only a dot)", "type count 5, none there"). */
const selectsSomething = (type: string): boolean => type !== '' && type !== '.';

function selectValues(values: readonly HandleValue[], { indexes, types }: Selection): HandleValue[] {
  if (indexes.length === 0 && types.length === 0) return [...values];
  const wanted = { indexes, types: types.filter(selectsSomething) };
  if (indexes.length === 0 && wanted.types.length === 0) return [];
  return values.filter(createValueFilter(wanted));
}
