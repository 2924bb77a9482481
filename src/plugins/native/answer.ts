// Handles native requests, independent of the transport.
import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import type { Host } from '../../host.js';
import type { Context } from '../../context.js';
import { ServiceError } from '../../errors.js';
import { type HandleRef, MAX_HANDLE_BYTES } from '../../handle/handle.js';
import { RESPONSE_CODE } from '../../handle/outcome.js';
import { createValueFilter, type HandleValue, type Selection } from '../../handle/value.js';
import { type Result, resultOf } from '../../http/context.js';
import { asServiceError, createReportUnexpected } from '../../http/error-reply.js';
import { maybe } from '../../maybe.js';
import type { Resolution } from '../../resolver/resolution.js';
import { valuesOf } from '../../resolver/parsed-records.js';
import type { ResolverRead } from '../../resolver/resolver.js';
import type { Caller } from '../../upstream/caller.js';
import {
  decodeRequest,
  type Envelope,
  MAX_MESSAGE_BYTES,
  OP_CODE,
  OP_FLAG,
  type Request,
  type ResolutionRequest as Question,
} from './codec.js';
import type { PreparedMessages } from './prepared-messages.js';
import {
  type AnsweredMessage,
  createReply,
  encrypted,
  failedReply,
  malformed,
  type MessageProblem,
  type NativeOutcome,
  type NativeReply,
  refusalMessage,
  replyUnreadable,
  type Transport,
} from './reply.js';
import type { SiteInfo } from './site-record.js';

export interface Incoming {
  envelope: Envelope;
  message: Buffer;
  transport: Transport;
  /** Judges a miss; returns its caller. */
  admit?: AdmitMessage;
  /** Returns the error that rejects the handle. Called before the memory lookup. */
  refusalOf?:
    | ((handle: HandleRef) => ServiceError | undefined | Promise<ServiceError | undefined>)
    | undefined;
  /** Maximum response length without envelope (bytes). Default: the maximum that clients accept. */
  maxAnswerBytes?: number | undefined;
  /** Raw envelope and message, if received contiguously. */
  received?: Buffer;
  /** Runs the work for a large record in a time slice. Undefined if the whole message already runs in one. */
  inSlice?: (work: () => Answering) => Answering;
}

type Answering = AnsweredMessage | Promise<AnsweredMessage>;

export type NativeAnswer = ReturnType<typeof createAnswer>;

export function createAnswer(host: Host, prepared: PreparedMessages, resolve: Resolve, site: SiteInfo) {
  const { cache, refOf } = host;
  // Clients compare the expiration of a message with their wall clock.
  const { wall: now } = host.clock;
  const operate = createNativeOperations(host, resolve, site);
  const finish = createFinish(site, now);

  function readExchange(incoming: Incoming): Exchange | MessageProblem {
    const { envelope, message, transport } = incoming;
    if (envelope.isEncrypted) return encrypted(envelope.sessionId);
    const request = decodeRequest(message, { isPadded: transport !== 'tunnel' });
    if (!request.ok) return malformed(request.problem, transport);
    const { resolution } = request.value;
    const handle = resolution && refOf(resolution.handle.toString('utf8'));
    return { incoming, request: request.value, handle };
  }

  /** Responds to a message that cannot be read. */
  function refuse(problem: MessageProblem): AnsweredMessage {
    const outcome = refusalMessage(problem.responseCode, 'invalid', problem.text);
    const reply = replyUnreadable(problem, now());
    return { reply, opCode: undefined, handle: undefined, outcome, isTooLong: false };
  }

  function completeExchange(exchange: Exchange): Answering {
    const outcome = operate(exchange);
    if (outcome instanceof Promise) return outcome.then((settled) => finish(exchange, settled));
    const answered = finish(exchange, outcome);
    prepared.prepareMessage(exchange.incoming, exchange.request, answered);
    return answered;
  }

  /** Handles a request; synchronous for a fresh entry in memory. Never throws or rejects. */
  function answer(incoming: Incoming): Answering {
    const exchange = readExchange(incoming);
    if (!('request' in exchange)) return refuse(exchange);
    const { handle } = exchange;
    const { inSlice } = incoming;
    const complete = (): Answering => completeExchange(exchange);
    const isSliced = inSlice !== undefined && handle !== undefined && cache.memory.isLarge(handle.key);
    return isSliced === true ? inSlice(complete) : complete();
  }

  /** Replies with code 2, without an upstream request; the client tries a different interface or site. */
  function deny(incoming: Incoming, text: string): AnsweredMessage {
    const exchange = readExchange(incoming);
    if (!('request' in exchange)) return refuse(exchange);
    return finish(exchange, refusalMessage(RESPONSE_CODE.error, 'invalid', text));
  }

  return { answerPrepared: prepared.answer.bind(prepared), answer, deny, refuse };
}

interface Exchange {
  incoming: Incoming;
  request: Request;
  /** Requested handle; undefined unless the operation is a resolution. */
  handle: HandleRef | undefined;
}

/** Encodes an outcome, never longer than clients accept. */
function createFinish(site: SiteInfo, now: () => number) {
  return function finish(exchange: Exchange, outcome: NativeOutcome): AnsweredMessage {
    const { incoming, request, handle } = exchange;
    const { envelope, maxAnswerBytes: maxBytes = MAX_MESSAGE_BYTES } = incoming;
    const { opCode } = request.header;
    const encode = (given: NativeOutcome, most: number): NativeReply | undefined =>
      createReply({ envelope, request }, given, { now: now(), siteSerial: site.serial, maxBytes: most });
    let isTooLong = false;
    let problem: NativeOutcome;
    try {
      const reply = encode(outcome, maxBytes);
      if (reply !== undefined) return { reply, opCode, handle, outcome, isTooLong };
      isTooLong = true;
      const text = maxBytes < MAX_MESSAGE_BYTES ? TOO_LONG_FOR_UDP : TOO_LONG;
      // With the entry, so that a repeated request is refused without encoding the record again.
      problem = { ...refusalMessage(RESPONSE_CODE.error, outcome.result, text), entry: outcome.entry };
    } catch (cause) {
      const detail = 'data of a value in an unknown format';
      problem = failedReply(new ServiceError('UPSTREAM_INVALID_RESPONSE', { detail, cause }));
    }
    const reply = encode(problem, MAX_MESSAGE_BYTES);
    if (reply === undefined) throw new RangeError('a refusal that is too long');
    return { reply, opCode, handle, outcome: problem, isTooLong };
  };
}

const TOO_LONG =
  'The record is too long for a message: request some of its values, or use the JSON interface';
const TOO_LONG_FOR_UDP = 'The answer is too large for UDP: use TCP';

/** Whether an op code is administrative, which this site does not support. */
const isAdministration = (opCode: number): boolean =>
  (opCode >= 100 && opCode < 200) || (opCode >= 300 && opCode < 400) || opCode >= 1000;

function createNativeOperations(context: Context, resolve: Resolve, site: SiteInfo) {
  const onUnexpected = createReportUnexpected(context);
  const asOutcome = (error: unknown): NativeOutcome => failedReply(asServiceError(error, onUnexpected));

  async function readSite(): Promise<NativeOutcome> {
    const data = await site.read();
    if (data === undefined)
      return refusalMessage(RESPONSE_CODE.error, 'local', 'No site record is configured');
    return { responseCode: RESPONSE_CODE.success, body: { kind: 'site', site: data }, result: 'local' };
  }

  function performOperation(exchange: Exchange): NativeOutcome | Promise<NativeOutcome> {
    const { incoming, request, handle } = exchange;
    const { envelope, admit, refusalOf } = incoming;
    const { header, resolution } = request;
    const { opCode, flags } = header;
    if (envelope.sessionId > 0) return refusalMessage(RESPONSE_CODE.sessionTimeout, 'invalid', NO_SESSION);
    if (isAdministration(opCode))
      return refusalMessage(RESPONSE_CODE.operationNotSupported, 'invalid', NO_ADMIN);
    // No signing key exists. Code 2 makes the client try a different site.
    if ((flags & OP_FLAG.certify) !== 0) return refusalMessage(RESPONSE_CODE.error, 'invalid', NOT_SIGNED);
    if (resolution !== undefined && handle !== undefined) {
      const message = { handle, flags, admit };
      if (refusalOf === undefined) return resolve(resolution, message);
      // The client of a rejected handle tries a different site, as after a failure.
      return maybe(refusalOf(handle), (refusal) =>
        refusal === undefined ? resolve(resolution, message) : failedReply(refusal),
      );
    }
    if (opCode === OP_CODE.siteInfo) return readSite();
    return refusalMessage(RESPONSE_CODE.error, 'invalid', NO_LOGIN);
  }

  return function operate(exchange: Exchange): NativeOutcome | Promise<NativeOutcome> {
    try {
      const outcome = performOperation(exchange);
      return outcome instanceof Promise ? outcome.catch(asOutcome) : outcome;
    } catch (error) {
      return asOutcome(error);
    }
  };
}

const NO_SESSION = 'Invalid session id or session time out. Please try again.';
const NO_ADMIN = 'This site is for resolution only';
const NOT_SIGNED = 'This site does not sign its answers';
const NO_LOGIN = 'This site has no sessions';

// Resolves handles from cache or upstream, with the same resolver and policy as the other interfaces.

/** Judges a memory miss, before the upstream request. @throws ServiceError of a judge */
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
  message: { handle: HandleRef; flags: number; admit?: AdmitMessage | undefined },
) => NativeOutcome | Promise<NativeOutcome>;

export function createResolve(host: Host): Resolve {
  return function resolve({ handle: spelling, ...selection }, { handle, flags, admit }) {
    if (!canExist(spelling)) return notFound('local');
    // Each request is judged once.
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

/** Whether a handle can exist: clients reject longer handles, and JSON has only UTF-8 without NUL. */
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

/** Gives the values of a stale record a TTL of 0, because a message cannot tell that they are stale. */
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
  const origin = originOf(handle, { caller });
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

/** Whether the public record has all requested indexes, so that no private value can match one. */
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

/** Empty and `.` select nothing (recordings "type=. (only a dot)", "type count 5, none there"). */
const selectsSomething = (type: string): boolean => type !== '' && type !== '.';

function valuesRequested(values: readonly HandleValue[], { indexes, types }: Selection): HandleValue[] {
  if (indexes.length === 0 && types.length === 0) return [...values];
  const wanted = { indexes, types: types.filter(selectsSomething) };
  if (indexes.length === 0 && wanted.types.length === 0) return [];
  return values.filter(createValueFilter(wanted));
}
