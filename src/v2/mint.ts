// POST to a prefix: creates a handle with a minted name. A repeated POST creates no second handle.
import { createHash, randomUUID } from 'node:crypto';
import { ServiceError } from '../errors.js';
import { MAX_HANDLE_BYTES } from '../handle/handle.js';
import { createReportUnexpected } from '../http/error-reply.js';
import { isConditional } from '../http/preconditions.js';
import { judgeWrite } from '../write/decisions.js';
import { noBody } from '../write/write.js';
import { type V2Call, originFor } from './call.js';
import { planRecord } from './ownership.js';
import { type SizedValues, assertPreconditions, etagOfValues } from './read.js';
import { assertJson, holdsValues, readBack, sendCreation, sendWritten, withInputs } from './write.js';

/** Maximum minted names per POST. Random UUIDs do not collide: a server that reports five collisions is broken. */
const MAX_NAMES = 5;

type MakeName = (uuid: string) => string;

/**
 * Mints the name in the proxy, so that the handle can be looked up after a timeout, and creates it with
 * overwrite=false. A repeated POST gets the same handle: always with the same `Idempotency-Key`, otherwise
 * only if the response was lost.
 */
export async function mint(call: V2Call, prefix: string): Promise<void> {
  const { req, context, login } = call;
  context.result = 'write';
  assertJson(req);
  const { query } = context.target;
  const makeName = readGenerator(prefix, context.parameters);
  const collection = originFor(call, call.v2.host.refOf(`${prefix}/`));
  await withInputs(call, collection, async ({ inputs, chars }) => {
    // Preconditions apply to the collection, which exists and has no ETag.
    if (isConditional(req)) assertPreconditions(req, await etagOfValues(call, { values: [], chars: 0 }));
    const { values } = await planRecord(call, { inputs, handle: `${prefix}/`, chars });
    const create: Create = (handle, options) => createMinted(call, { handle, values, chars }, options);
    const identity = `${login.identity.index}:${login.identity.handle}`;
    const key = req.headers['idempotency-key'];
    if (key === undefined) {
      // Identifies a repeated POST.
      const fingerprint = fingerprintOf([identity, prefix, query, JSON.stringify(values)]);
      await mintRandom(call, { fingerprint, makeName, create });
      return;
    }
    const handle = makeName(uuidOf([identity, String(key), prefix]));
    if (await create(handle, { mayExist: true })) return;
    const detail = `this Idempotency-Key belongs to ${handle}, which has different values`;
    throw new ServiceError('PRECONDITION_FAILED', { detail });
  });
}

const GENERATORS = ['uuid', 'juuid'];

/** Parses `generator`, `prefix` and `suffix`. Adds no separators, as in the original service. */
function readGenerator(prefix: string, parameters: URLSearchParams): MakeName {
  const generator = parameters.get('generator') ?? 'uuid';
  if (!GENERATORS.includes(generator)) {
    const detail = `unknown generator ${JSON.stringify(generator)}; give one of ${GENERATORS.join(', ')}`;
    throw new ServiceError('BAD_PARAMETER', { detail });
  }
  const [before, after] = [parameters.get('prefix') ?? '', parameters.get('suffix') ?? ''];
  return (uuid) => {
    const handle = `${prefix}/${before}${uuid}${after}`;
    if (handle.includes('\0'))
      throw new ServiceError('BAD_PARAMETER', { detail: 'a name cannot contain NUL' });
    if (Buffer.byteLength(handle) > MAX_HANDLE_BYTES) throw new ServiceError('HANDLE_TOO_LONG');
    return handle;
  };
}

/** Derives a version 8 UUID (RFC 9562 §5.8) from the texts. */
function uuidOf(texts: readonly string[]): string {
  const hex = fingerprintOf(texts);
  const variant = '89ab'[parseInt(hex.charAt(16), 16) % 4] ?? '8';
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

const fingerprintOf = (texts: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(texts)).digest('hex');

/** Creates and sends the handle. Returns false, unsent, if it exists; with `mayExist` only if its values differ. */
type Create = (handle: string, options: { mayExist: boolean }) => Promise<boolean>;

async function createMinted(
  call: V2Call,
  { handle: name, ...record }: SizedValues & { handle: string },
  { mayExist }: { mayExist: boolean },
): Promise<boolean> {
  const { req, context } = call;
  const handle = call.v2.host.refOf(name);
  context.handle = handle;
  const origin = originFor(call, handle);
  const outcome = await call.v2.carryOut<undefined, unknown, 'created' | 'exists'>({
    req,
    context,
    origin,
    withBody: noBody,
    attempt: (_body, _current, send) => sendCreation(call, origin, send, record),
  });
  const isOurs = outcome === 'created' || (mayExist && (await holdsValues(call, origin, record)));
  if (!isOurs) return false;
  const written = await readBack(origin, record);
  await sendWritten(call, { handle: handle.text, isNew: true, written });
  return true;
}

/** Mints a random name, or reuses the unclaimed name from an equal earlier POST. */
async function mintRandom(
  call: V2Call,
  { fingerprint, makeName, create }: { fingerprint: string; makeName: MakeName; create: Create },
): Promise<void> {
  let unclaimed = await call.v2.unclaimed.take(fingerprint);
  for (let names = 0; names < MAX_NAMES; names++) {
    const isClaimed = unclaimed !== undefined;
    const handle = unclaimed ?? makeName(randomUUID());
    unclaimed = undefined;
    const isDone = await leaveNameIfLost(call, { fingerprint, handle, isClaimed }, () =>
      create(handle, { mayExist: isClaimed }),
    );
    if (isDone) return;
  }
  throw new ServiceError('UPSTREAM_FAILED', { detail: `${MAX_NAMES} new names in a row exist already` });
}

/**
 * Marks the name as unclaimed, for the next equal POST, if the client disconnects or the outcome is unknown. A name
 * whose creation was refused is unmarked: a client without a valid login could otherwise fill Redis.
 */
async function leaveNameIfLost(
  { v2, res }: V2Call,
  { fingerprint, handle, isClaimed }: { fingerprint: string; handle: string; isClaimed: boolean },
  work: () => Promise<boolean>,
): Promise<boolean> {
  let leaving: Promise<void> | undefined;
  const leave = (): Promise<void> => (leaving ??= v2.unclaimed.add(fingerprint, handle));
  const leaveIfLost = (): void => {
    // A client that closed its connection while waiting is indistinguishable from a half-closed client.
    const mayBeLost = !res.writableFinished || res.req.socket.readableEnded;
    if (mayBeLost) leave().catch(createReportUnexpected(v2.host));
  };
  if (res.destroyed) leaveIfLost();
  else res.once('close', leaveIfLost);
  try {
    const isDone = await work();
    if (!isDone) res.off('close', leaveIfLost);
    return isDone;
  } catch (failure) {
    if (isClaimed || mayBeCreated(failure)) await leave();
    else {
      res.off('close', leaveIfLost);
      await leaving;
      if (leaving !== undefined) await v2.unclaimed.remove(fingerprint, handle);
    }
    throw failure;
  }
}

/** Whether the handle may have been created. A refusal (4xx) creates nothing, nor does a request that was not sent. */
const mayBeCreated = (failure: unknown): boolean =>
  judgeWrite({ failure }) === 'unknown' && !(failure instanceof ServiceError && failure.status < 500);
