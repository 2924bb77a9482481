// A record at its Handle server: reads and writes with the login of a single caller, bypassing the cache.
import { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import { RESPONSE_CODE } from '../handle/outcome.js';
import { type Selection, createValueFilter } from '../handle/value.js';
import type { Resolution } from '../resolver/resolution.js';
import { valuesOf } from '../resolver/parsed-records.js';
import type { Resolver } from '../resolver/resolver.js';
import type { Caller } from '../upstream/caller.js';
import type {
  ListOptions,
  OriginServer,
  ReadOptions,
  RecordChange,
  RecordRead,
  SendOptions,
} from '../upstream/contract.js';
import { type ListAnswer, type RecordAnswer, answerWith } from '../upstream/reply.js';
import { NO_ANSWER, readAtServers } from '../upstream/routing.js';
import { type Upstreams, assertFound, notResponsible } from '../upstream/upstreams.js';

/** Options without the login, which is fixed per record. */
type Without<Options> = Omit<Options, keyof SendOptions>;

/** Sends a write. Calls `beforeSend` just before. */
export type SendRequest<Answer> = (beforeSend?: () => void) => Promise<Answer>;

/** A record at its server. A read without it, or a PUT refused because it exists, invalidates an entry that differs. */
export interface OriginRecord {
  handle: HandleRef;
  /** The server that accepts writes; undefined if no server is responsible. */
  server: OriginServer | undefined;
  /** The error of every request but an anonymous read; undefined for a server that takes logins and writes. */
  refusal?: (() => ServiceError) | undefined;
  caller: Caller | undefined;
  /** Identity of the Basic login (`index:handle`); undefined for a session and for anonymous requests. */
  identity: string | undefined;
  get: (options: Without<ReadOptions>) => Promise<RecordRead>;
  write: (change: RecordChange) => SendRequest<RecordAnswer>;
  /** Lists the handles under a prefix of the same server. */
  list: (prefix: string, options: Without<ListOptions>) => Promise<ListAnswer>;
}

/** A caller; without `authorization`, its requests are anonymous. */
interface CallerLogin {
  caller: Caller | undefined;
  authorization?: string | undefined;
  /** See `OriginRecord`. */
  identity?: string | undefined;
}

export type OriginOf = (handle: HandleRef, login: CallerLogin) => OriginRecord;

/** Creates origin records; each looks up the servers of its handle once. */
export function createOriginOf(upstreams: Upstreams, resolver: Resolver): OriginOf {
  return function originOf(handle, { authorization, identity, caller: given }) {
    const servers = upstreams.findServers(handle);
    const [server] = servers;
    const refusal = readOnlyRefusal(handle, upstreams, server);
    if (refusal !== undefined) {
      const write = () => () => Promise.reject(refusal());
      const get = createPublicGet(handle, given, resolver);
      const list = server?.list ?? (() => Promise.resolve(NO_ANSWER));
      return { handle, server, refusal, caller: given, identity: undefined, get, write, list };
    }
    // The miss limit ignores a read whose login the Handle server checks.
    const isChecked = identity !== undefined && servers.every(({ checksLogins }) => checksLogins);
    const caller = isChecked ? given && { ...given, network: undefined } : given;
    const login = { authorization, caller: given };
    return {
      handle,
      server,
      caller,
      identity,
      async get(options) {
        const read = (): Promise<RecordRead> => readAtServers(servers, handle, { ...options, ...login });
        const answer = await resolver.aroundMiss({ handle, caller, read, isUnknown: showsUnknown });
        if (answer.responseCode === RESPONSE_CODE.handleNotFound)
          await resolver.learn(handle, { exists: false });
        return answer;
      },
      write: (change) => async (beforeSend) => {
        const { records } = assertFound(server);
        const answer = await records.write(handle, change, { ...login, beforeSend }).catch(throwAsLost);
        if (answer.responseCode === RESPONSE_CODE.handleExists)
          await resolver.learn(handle, { exists: true });
        return answer;
      },
      list: async (prefix, options) => server?.list(prefix, { ...options, ...login }) ?? NO_ANSWER,
    };
  };
}

/**
 * Returns the error of all but public reads; undefined for a handle whose server, here or elsewhere, takes more. Without any
 * server here, none could check a login.
 */
function readOnlyRefusal(
  { key }: HandleRef,
  { isServed, servers }: Upstreams,
  server: OriginServer | undefined,
) {
  if (server === undefined) return servers.length > 0 && isServed(key) ? undefined : notResponsible;
  return server.source.forwards ? undefined : server.source.refusal;
}

/** Rethrows a lost connection as a timeout, because the write may have arrived. */
function throwAsLost(failure: unknown): never {
  if (!(failure instanceof ServiceError) || failure.code !== 'UPSTREAM_UNREACHABLE') throw failure;
  const detail = 'the connection was lost; it is unknown whether the write was carried out';
  throw new ServiceError('UPSTREAM_TIMEOUT', { detail, diagnosis: failure.diagnosis, cause: failure });
}

const showsUnknown = ({ status, responseCode }: RecordRead): boolean | undefined =>
  status < 500 ? responseCode === RESPONSE_CODE.handleNotFound : undefined;

/** Creates the read of a record without private values. It uses the cache, because no login affects the response. */
const createPublicGet =
  (handle: HandleRef, caller: Caller | undefined, resolver: Resolver): OriginRecord['get'] =>
  async ({ authoritative = false, selection = { indexes: [], types: [] } }) => {
    const resolution = await resolver.resolve(handle, { authoritative, caller });
    return readOf(resolution, handle.text, selection);
  };

function readOf(resolution: Resolution, handle: string, selection: Selection): RecordRead {
  if (resolution.kind === 'refused') {
    const { status, members, retryAfter } = resolution.refused;
    const responseCode = Number(members['responseCode']);
    return { ...answerWith(status, { ...members, responseCode }), retryAfter, values: undefined };
  }
  const { entry } = resolution;
  if (entry.kind === 'not-found') {
    const answer = answerWith(404, { responseCode: RESPONSE_CODE.handleNotFound, handle });
    return { ...answer, values: undefined };
  }
  const values = valuesOf(entry).filter(createValueFilter(selection));
  const responseCode = values.length === 0 ? RESPONSE_CODE.valuesNotFound : RESPONSE_CODE.success;
  return { ...answerWith(200, { responseCode, handle, values }), values };
}

/** @throws ServiceError NOT_RESPONSIBLE, UPSTREAM_READ_ONLY */
export function writableServer({ server }: OriginRecord): OriginServer {
  if (server?.readOnly === false) return server;
  assertFound(server);
  throw new ServiceError('UPSTREAM_READ_ONLY');
}

/** Reads the values visible to the caller; the public ones if the server refuses, as it does if one is not visible. */
export async function readVisible(
  record: OriginRecord,
  options: { authoritative: boolean },
): Promise<RecordRead & { isFull: boolean }> {
  const whole = await record.get(options);
  if (!hidesValues(whole)) return { ...whole, isFull: true };
  return { ...(await record.get({ ...options, publicOnly: true })), isFull: false };
}

const hidesValues = ({ status, responseCode }: RecordRead): boolean =>
  status === 403 &&
  (responseCode === RESPONSE_CODE.invalidAdmin || responseCode === RESPONSE_CODE.insufficientPermissions);
