// PUT and DELETE of a handle. PUT creates the record (201) or replaces all its values (204).
import type { IncomingMessage } from 'node:http';
import { ServiceError } from '../errors.js';
import { type HandleRef, handleToPath } from '../handle/handle.js';
import { writeJson } from '../handle/json.js';
import { RESPONSE_CODE } from '../handle/outcome.js';
import { isConditional, isCreateOnly } from '../http/preconditions.js';
import { JSON_TYPE, NO_STORE } from '../http/reply.js';
import { parseJsonBytes } from '../http/request-body.js';
import { forwardedList } from '../http/client-address.js';
import { groupsOf } from '../time-slicer.js';
import type { RecordAnswer } from '../upstream/reply.js';
import type { OriginRecord, SendRequest } from '../write/origin-record.js';
import { type Judged, type SendWrite, noBody, withoutRetryAfter } from '../write/write.js';
import { type V2Call, originFor, refusalError, sendV2 } from './call.js';
import { planRecord } from './ownership.js';
import {
  type CallerRecord,
  type SizedValues,
  assertLogin,
  assertPreconditions,
  readAsCaller,
  etagOfValues,
} from './read.js';
import { BODY_LIMITS } from './translation/attributes.js';
import { type V2Input, readInputs } from './translation/data.js';
import type { WritePlan } from './translation/record.js';

interface InputList {
  inputs: V2Input[];
  /** Body length (bytes). */
  chars: number;
}

/** `rawHandle` is the handle as spelled in the path, without the tolerated trailing slash. */
export interface HandleResource {
  handle: HandleRef;
  rawHandle: string;
}

export async function putHandle(call: V2Call, { handle, rawHandle }: HandleResource): Promise<void> {
  const { req, context } = call;
  context.result = 'write';
  assertJson(req);
  const isCreation = isCreateOnly(req);
  const hasCondition = isConditional(req);
  const origin = originFor(call, handle);
  await call.v2.carryOut<InputList, CallerRecord, true>({
    req,
    context,
    origin,
    withBody: (_req, work) => withInputs(call, origin, work),
    // With `If-None-Match: *` the Handle server itself creates the record only if it does not exist.
    read: isCreation ? undefined : () => readCurrent(call, origin, hasCondition),
    // A replacement sends its response under the lock, so that the ETag belongs to this write.
    attempt(body, current, send) {
      const target = { ...body, rawHandle, origin, send };
      return current === undefined
        ? createRecord(call, { ...target, isCreation })
        : replace(call, { ...target, current });
    },
  });
}

/** Deletes a handle if deletion is enabled. For a missing handle, 412 and 404 take precedence over 403. */
export async function deleteHandle(call: V2Call, handle: HandleRef): Promise<void> {
  const { req, context } = call;
  context.result = 'write';
  const hasCondition = isConditional(req);
  const origin = originFor(call, handle);
  const read = async (): Promise<CallerRecord> => {
    const current = await readCurrent(call, origin, hasCondition);
    if (current === undefined) throw new ServiceError('V2_NOT_FOUND');
    return current;
  };
  await call.v2.carryOut<undefined, unknown, true>({
    req,
    context,
    origin,
    deletion: {
      scope: 'handle',
      async refuse() {
        await read();
        throw new ServiceError('V2_NO_DELETE', { detail: 'the operator of this service has turned it off' });
      },
    },
    withBody: noBody,
    read,
    async attempt(_body, _current, send) {
      const answer = await send([origin.write({ kind: 'removal' })]);
      return answer && assertDone(answer);
    },
  });
  sendV2(call.res, { status: 204, headers: NO_STORE });
}

/** Reads the record as the caller. @throws ServiceError PRECONDITION_FAILED for a failed precondition */
async function readCurrent(
  call: V2Call,
  origin: OriginRecord,
  hasCondition: boolean,
): Promise<CallerRecord | undefined> {
  const current = await readAsCaller(origin, { authoritative: true });
  if (hasCondition) assertPreconditions(call.req, current && (await etagOfValues(call, current)));
  return current;
}

interface PutTarget extends InputList {
  rawHandle: string;
  origin: OriginRecord;
  send: SendWrite;
}

/** Creates the record; undefined if another client has created it meanwhile, unless only a creation was requested. */
async function createRecord(
  call: V2Call,
  { origin, rawHandle, inputs, chars, send, isCreation }: PutTarget & { isCreation: boolean },
): Promise<true | undefined> {
  const { text: handle } = origin.handle;
  const { values } = await planRecord(call, { inputs, handle, chars });
  const record = { values, chars };
  if ((await sendCreation(call, origin, send, record)) === 'created') {
    // Without a lock, the stored record may already be that of another client.
    await sendWritten(call, { handle, rawHandle, isNew: true, written: record });
    return true;
  }
  if (!isCreation) return undefined;
  throw new ServiceError('PRECONDITION_FAILED', { detail: 'if-none-match: *, but the handle exists' });
}

/** Creates a record, which the server does atomically. After an unknown outcome it is read back and never resent. */
export async function sendCreation(
  call: V2Call,
  origin: OriginRecord,
  send: SendWrite,
  record: SizedValues,
): Promise<'created' | 'exists'> {
  const { values } = record;
  const creation = origin.write({ kind: 'record', values, overwrite: false });
  const answer = await send([creation], { isStored: () => holdsValues(call, origin, record) });
  if (answer === undefined) return 'created';
  const isRefused = answer.outcome === 'unchanged';
  if (isRefused && answer.responseCode === RESPONSE_CODE.handleExists) return 'exists';
  assertDone(answer);
  return 'created';
}

/** Whether the record equals these values, with its secret keys, as far as the caller can read it. */
export async function holdsValues(
  call: V2Call,
  origin: OriginRecord,
  expected: SizedValues,
): Promise<boolean> {
  const stored = await readAsCaller(origin, { authoritative: true });
  if (stored === undefined) return false;
  const digest = (record: SizedValues) => etagOfValues(call, record, { withHidden: stored.isFull });
  return (await digest(stored)) === (await digest(expected));
}

async function replace(
  call: V2Call,
  { origin, rawHandle, inputs, current, send, ...body }: PutTarget & { current: CallerRecord },
): Promise<true | undefined> {
  const chars = body.chars + current.chars;
  const { text: handle } = origin.handle;
  const { values, plan } = await planRecord(call, { inputs, handle, current, chars });
  const { requests, indexes } = requestsOf(origin, plan);
  const answer = await send(requests, { indexes });
  // The record was deleted after the read, so a plan by index cannot change it.
  if (plan.kind === 'by-index' && answer !== undefined && isGone(answer)) return undefined;
  if (answer !== undefined) assertDone(answer);
  const isNew = plan.kind === 'whole' && answer?.status === 201;
  const written = await readBack(origin, { values, chars });
  await sendWritten(call, { handle, rawHandle, isNew, written });
  return true;
}

const isGone = (answer: RecordAnswer): boolean =>
  answer.status >= 300 && refusalError(answer, 'write').code === 'V2_NOT_FOUND';

/** Maximum indexes per request, in at most 4,250 characters: Jetty refuses a request head of more than 8 KiB. */
const MAX_REMOVALS = 250;

/** `indexes`: those that the requests write or remove; undefined if they replace the whole record. */
function requestsOf(origin: OriginRecord, plan: WritePlan) {
  if (plan.kind === 'whole')
    return { requests: [origin.write({ kind: 'record', values: plan.values, overwrite: true })] };
  const { add, change, remove } = plan;
  const requests: SendRequest<RecordAnswer>[] = [];
  if (add.length > 0) requests.push(origin.write({ kind: 'values', values: add, overwrite: false }));
  if (change.length > 0) requests.push(origin.write({ kind: 'values', values: change, overwrite: true }));
  for (const indexes of groupsOf(remove, MAX_REMOVALS))
    requests.push(origin.write({ kind: 'removal', indexes }));
  return { requests, indexes: [...[...add, ...change].map(({ index }) => index), ...remove] };
}

/** Asserts a successful write. @throws ServiceError for a Handle server refusal */
function assertDone(answer: Judged<RecordAnswer>): true {
  if (answer.status < 300) return true;
  const refusal = refusalError(answer, 'write');
  throw answer.outcome === 'unchanged' ? refusal : withoutRetryAfter(refusal);
}

interface WrittenRecord {
  handle: string;
  /** The client's spelling; undefined for a minted name. */
  rawHandle?: string;
  isNew: boolean;
  /** Determines the ETag, which must not belong to a different client's write (RFC 9110 §9.3.4). */
  written: SizedValues;
}

/**
 * Returns the record that a call has written, if no other client can have written it since. The stored record has
 * the server's timestamps and rewritten values; if it cannot be read, the sent values are returned.
 */
export async function readBack(origin: OriginRecord, sent: SizedValues): Promise<SizedValues> {
  return (await readAsCaller(origin, { authoritative: true }).catch(() => undefined)) ?? sent;
}

/** Sends 201 with Location, or 204. Never fails for lack of an ETag. */
export async function sendWritten(
  call: V2Call,
  { handle, rawHandle, isNew, written }: WrittenRecord,
): Promise<void> {
  const etag = await etagOfWritten(call, written);
  const headers = { ...NO_STORE, ...(etag !== undefined && { ETag: etag }) };
  if (!isNew) {
    sendV2(call.res, { status: 204, headers });
    return;
  }
  sendV2(call.res, {
    status: 201,
    headers: { ...headers, Location: locationOf(call, handle, rawHandle) },
    contentType: JSON_TYPE,
    body: writeJson({ 'epic-pid': handle }),
  });
}

/**
 * Returns undefined if the client has left, or if there is no room for a large record. An error would be the response to a
 * write that was executed, and a POST would not leave its name for a repetition.
 */
async function etagOfWritten(call: V2Call, written: SizedValues): Promise<string | undefined> {
  try {
    return await etagOfValues(call, written);
  } catch (failure) {
    if (failure instanceof ServiceError) return undefined;
    throw failure;
  }
}

/** Returns the URL of a handle below `v2.publicUrl` or the request's base URL. */
function locationOf(call: V2Call, handle: string, rawHandle: string | undefined): string {
  // Encodes the handle's trailing slash, because a plain one is ignored in request paths.
  const path = rawHandle ?? handleToPath(handle).replace(/\/$/, '%2F');
  return `${call.v2.config.v2.publicUrl ?? baseUrlOf(call)}/api/v2/handles/${path}`;
}

/** Includes the unregistered `application/x-json`, as in the original service. */
const JSON_TYPES = /^application\/(?:x-)?json$/i;

/** Asserts a JSON type. @throws ServiceError V2_NOT_JSON, also without a Content-Type, as in the original service */
export function assertJson({ headers }: IncomingMessage): void {
  const [type = '', ...parameters] = (headers['content-type'] ?? '').split(';').map((part) => part.trim());
  const charset = parameters.find((part) => /^charset=/i.test(part))?.slice('charset='.length);
  if (!JSON_TYPES.test(type))
    throw new ServiceError('V2_NOT_JSON', { detail: 'send Content-Type: application/json' });
  if (charset !== undefined && !/^"?utf-?8"?$/i.test(charset))
    throw new ServiceError('V2_NOT_JSON', { detail: 'send it in UTF-8' });
}

/**
 * Maximum size of a body that is parsed before the Handle server has seen the login (bytes), which takes less
 * than a millisecond. Larger bodies cost an extra read; records have a few kilobytes.
 */
const MAX_UNCHECKED_BYTES = 16 * 1024;

const BODY_CODES = { invalid: 'V2_BAD_BODY', encoding: 'V2_NOT_JSON' } as const;

/**
 * Receives the body and passes its values to `work`. The body counts towards the
 * memory limit until `work` ends. `origin` is a record at the server that executes the write.
 *
 * @throws ServiceError V2_BAD_BODY, BODY_TOO_LARGE, OVERLOADED, V2_LOGIN_NEEDED for a large body with a wrong
 * login, or V2_NOT_JSON for an unknown Content-Encoding
 */
export function withInputs<T>(
  { v2, req, run }: V2Call,
  origin: OriginRecord,
  work: (body: InputList) => Promise<T>,
): Promise<T> {
  const readBody = async (bytes: Buffer): Promise<T> => {
    if (bytes.length > MAX_UNCHECKED_BYTES) await assertLogin(origin.get);
    const json = parseJsonBytes(bytes, BODY_LIMITS, BODY_CODES);
    return work({ inputs: await run(readInputs(json), bytes.length), chars: bytes.length });
  };
  return v2.withBody(req, readBody, BODY_CODES);
}

/** Returns the origin that the client uses, as reported by the outermost of the trusted proxies. */
function baseUrlOf({ req, context }: V2Call): string {
  const { socket, headers } = req;
  const { isTrusted } = context.client.peer;
  const [proto = ''] = isTrusted ? forwardedList(req, 'proto') : [];
  const [forwardedHost = ''] = isTrusted ? forwardedList(req, 'host') : [];
  const host = forwardedHost || headers.host;
  const scheme = proto || ('encrypted' in socket ? 'https' : 'http');
  return `${scheme}://${isHostName(host) ? host : addressOf(req)}`;
}

/** Whether the host is valid; an HTTP/1.0 request may have none. */
const isHostName = (host: string | undefined): host is string =>
  host !== undefined && /^(\[[\da-f:.]+\]|[\w.-]+)(:\d+)?$/i.test(host);

function addressOf({ socket }: IncomingMessage): string {
  const { localAddress = 'localhost', localPort = 0 } = socket;
  return `${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}
