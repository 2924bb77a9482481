// Resolves handles from cache or upstream, with the same resolver and policy as the other interfaces.
import { type NativeOutcome, refusalMessage } from './reply.js';
import { OP_FLAG, type ResolutionRequest as Question } from './codec.js';
import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import type { Host } from '../../app/plugin.js';
import { type HandleRef, MAX_HANDLE_BYTES } from '../../handle/handle.js';
import { RESPONSE_CODE } from '../../handle/outcome.js';
import { type HandleValue, type Selection, createValueFilter } from '../../handle/value.js';
import type { Result } from '../../http/context.js';
import { valuesOf } from '../../resolver/parsed-records.js';
import { type Resolution, resultOf } from '../../resolver/loader.js';
import type { ResolverRead } from '../../resolver/resolver.js';
import type { Caller } from '../../upstream/caller.js';
import { maybe } from '../../maybe.js';

/**
 * Applies the traffic rules to a memory miss, before the upstream request.
 *
 * @throws ServiceError RATE_LIMITED, TRAFFIC_REFUSED
 */
export type AdmitMessage = (handle: HandleRef) => Caller | undefined | Promise<Caller>;

interface Asked extends Selection {
  handle: HandleRef;
  /** Raw handle bytes, for the response. */
  spelling: Buffer;
  authoritative: boolean;
  /** Whether the request is not recursive. */
  noFallback: boolean;
  doNotRefer: boolean;
  admit: ResolverRead['admit'];
}

/** Resolves a handle. Throws or rejects with the upstream failure. */
export type Resolve = (
  question: Question,
  asked: { handle: HandleRef; flags: number; admit?: AdmitMessage | undefined },
) => NativeOutcome | Promise<NativeOutcome>;

export function createResolve(host: Host): Resolve {
  return function resolve({ handle: spelling, ...selection }, { handle, flags, admit }) {
    if (!canExist(spelling)) return notFound('local');
    // Applies the traffic rules only once per request.
    let admitting: ReturnType<AdmitMessage>;
    const asked: Asked = {
      ...selection,
      handle,
      spelling,
      authoritative: (flags & OP_FLAG.authoritative) !== 0,
      noFallback: (flags & OP_FLAG.recursive) === 0,
      doNotRefer: (flags & OP_FLAG.doNotRefer) !== 0,
      admit: () => (admitting ??= admit?.(handle)),
    };
    if ((flags & OP_FLAG.publicOnly) === 0) return resolveAll(asked, host);
    return maybe<Resolution, NativeOutcome>(host.resolver.read(handle, asked), (resolution) =>
      outcomeOf(resolution, asked, host),
    );
  };
}

/**
 * Whether a handle can exist: clients reject a handle above the maximum length, and a server's JSON
 * represents only UTF-8 without NUL.
 */
const canExist = (handle: Buffer): boolean =>
  handle.length > 0 && handle.length <= MAX_HANDLE_BYTES && !handle.includes(0) && isUtf8(handle);

const notFound = (result: Result, text = ''): NativeOutcome =>
  refusalMessage(RESPONSE_CODE.handleNotFound, result, text);

function outcomeOf(resolution: Resolution, asked: Asked, { metrics }: Host): NativeOutcome {
  const result = resultOf(resolution, asked);
  if (resolution.kind === 'refused') return refused(resolution.refused.members, asked);
  const { entry, stale, from } = resolution;
  if (stale !== undefined) metrics.countStale(stale);
  const outcome =
    entry.kind === 'not-found'
      ? notFound(result, entry.message)
      : record(stale === undefined ? valuesOf(entry) : withoutTtl(valuesOf(entry)), asked, result);
  return result === 'hit' && from === 'memory' ? { ...outcome, entry } : outcome;
}

/**
 * Gives the values of a stale record a TTL of 0, so that no client keeps them: a message has no other place to
 * tell that they are stale.
 */
const withoutTtl = (values: readonly HandleValue[]): HandleValue[] =>
  values.map((value) => ({ ...value, ttl: 0 }));

function record(values: readonly HandleValue[], asked: Asked, result: Result): NativeOutcome {
  const selected = valuesRequested(values, asked);
  if (selected.length === 0) return refusalMessage(RESPONSE_CODE.valuesNotFound, result);
  return {
    responseCode: RESPONSE_CODE.success,
    body: { kind: 'record', handle: asked.spelling, values: selected },
    result,
  };
}

/** Resolves public and private values. A single private match turns the whole response into a challenge. */
async function resolveAll(asked: Asked, host: Host): Promise<NativeOutcome> {
  if (asked.indexes.length > 0 && asked.types.length === 0) {
    const resolution = await host.resolver.read(asked.handle, asked);
    if (hasAllAsked(resolution, asked)) return outcomeOf(resolution, asked, host);
  }
  return readWhole(asked, host);
}

/** Reads all matches without credentials; the server refuses if any match is private. */
async function readWhole(asked: Asked, { originOf }: Host): Promise<NativeOutcome> {
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
  // Over https, the server's login filter responds first, with 401.
  if (responseCode === RESPONSE_CODE.authenticationNeeded || status === 401) return challenge();
  return refused(members, asked);
}

/**
 * Whether the public record contains all requested indexes. As an index has at most one value,
 * no private value then matches.
 */
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
/** Final response codes. Any other code is a failure, after which a client tries the next site. */
const FINAL: readonly unknown[] = [RESPONSE_CODE.invalidHandle, RESPONSE_CODE.notResponsible];

function refused(members: Record<string, unknown>, { doNotRefer }: Asked): NativeOutcome {
  const { responseCode, message, values } = members;
  const text = typeof message === 'string' ? message : '';
  if (REFERRALS.includes(responseCode)) {
    if (doNotRefer) return notFound('refused');
    const listed = Array.isArray(values) ? (values as HandleValue[]) : [];
    // Handle servers leave the handle empty (recording "derived prefix (prefix referral 303)").
    const body = { kind: 'referral' as const, handle: Buffer.alloc(0), values: listed };
    return { responseCode: responseCode as number, body, result: 'refused' };
  }
  const isFinal = FINAL.includes(responseCode);
  return refusalMessage(isFinal ? (responseCode as number) : RESPONSE_CODE.error, 'refused', text);
}

/**
 * Whether a type selects anything; empty and `.` select nothing (recordings "type=. (only a
 * dot)", "type count 5, none there").
 */
const selectsSomething = (type: string): boolean => type !== '' && type !== '.';

function valuesRequested(values: readonly HandleValue[], { indexes, types }: Selection): HandleValue[] {
  if (indexes.length === 0 && types.length === 0) return [...values];
  const wanted = { indexes, types: types.filter(selectsSomething) };
  if (indexes.length === 0 && wanted.types.length === 0) return [];
  return values.filter(createValueFilter(wanted));
}
