// Request context and id, stored in `res.locals`, which never outlives the request.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServiceError } from '../errors.js';
import { type HandleRef, handleInUrl, parseHandle, withoutSlashesAtEnd } from '../handle/handle.js';
import type { LabelValue } from '../observe/metric-list.js';
import type { Resolution } from '../resolver/resolution.js';
import { RequestWork, type RunSteps, type TimeSlicer } from '../time-slicer.js';
import type { Caller } from '../upstream/caller.js';
import type { ClientPeer } from '../upstream/contract.js';
import { signalOfLeaving } from './request-work.js';
import type { SendRaw } from './raw-response.js';
import { type Interface, type Listener, type Place, type Route, restOf } from './route-table.js';
import { type Format, ownerOf, parseParameters, readFormat, readTarget, routableTarget } from './target.js';

/** How a read was answered, for the log and metrics. */
type ReadResult = 'hit' | 'miss' | 'stale' | 'authoritative' | 'refused';

/** Result of a request, for the log and metrics; a plugin may add its own. */
export type Result = ReadResult | 'bypass' | 'write' | 'error' | 'invalid' | 'local' | (string & {});

export interface Client extends ClientAddress {
  peer: ClientPeer;
}

export interface ClientAddress {
  /** Empty for a disconnected client. */
  address: string;
  network: string;
  /** Whether it is a program on this machine. */
  isLocal: boolean;
}

export interface RequestContext extends Place {
  /** Interface, for metrics. */
  family: LabelValue<'interface'>;
  route?: Route | undefined;
  /** Query parameters; not changed. */
  parameters: URLSearchParams;
  format: Format;
  /** Whether a read wants only a stored response. */
  onlyIfCached: boolean;
  /** Undefined until the path is parsed. */
  handle?: HandleRef | undefined;
  result: Result;
  /** The client, even behind trusted proxies. */
  client: Client;
  /** Processes the records of the request in time slices. */
  runSteps: RunSteps;
  /** Whether the handle exists; undefined unless the request is an anonymous read. */
  exists?: boolean | undefined;
  /** Caller for upstream limits; undefined until the request is admitted. */
  caller?: Caller;
  /** Id from a trusted proxy, or generated on first use. */
  requestId?: string | undefined;
  /** Error that the response reports. */
  failure?: ServiceError;
  /** Sends head and body in a single write; undefined on the admin listener. */
  sendRaw?: SendRaw;
}

/** Handles a request, or a part of it. An error that it throws, or a rejection, becomes the response. */
export type Handler = (req: IncomingMessage, res: ServerResponse, context: RequestContext) => unknown;

/** Judges a request before an upstream request, and keeps its caller in the context. @throws ServiceError of a judge */
export type Admit = (
  req: IncomingMessage,
  res: ServerResponse,
  context: RequestContext,
) => Caller | Promise<Caller>;

/** Returns the context, which the first step of the request has set. */
export const contextOf = (res: ServerResponse): RequestContext =>
  (res as unknown as { locals: RequestContext }).locals;

interface NamedHandle {
  interface: 'record' | 'v2' | 'redirect' | 'list' | 'native';
  /** Undefined if invalid, or only in query or body. Lists, v2 collections and reverse lookups name `<prefix>/`. */
  handle: string | undefined;
}

/** Returns the handle that a request names, before its handler reads it: for judges. */
export function handleNamedBy(context: RequestContext): NamedHandle {
  const { route, parameters, target } = context;
  const prefix = route?.interface === 'list' ? parameters.get('prefix') : null;
  return prefix === null
    ? handleIn(context, route?.interface ?? ownerOf(target.path))
    : { interface: 'list', handle: `${prefix}/` };
}

function handleIn(place: Place, of: Interface): NamedHandle {
  if (of === 'native') return { interface: 'native', handle: undefined };
  if (of === 'v2') return { interface: 'v2', handle: handleOfPath(place, rawHandleOfV2(restOf(place))) };
  if (of !== 'redirect') return { interface: 'record', handle: handleOfPath(place, restOf(place)) };
  const namesHandle = place.match?.routes[0]?.path.endsWith('{handle}') === true;
  return { interface: 'redirect', handle: namesHandle ? handleOfRedirect(place) : undefined };
}

function handleOfPath({ match }: Place, raw: string): string | undefined {
  const [, name] = /\{(\w+)\}$/.exec(match?.routes[0]?.path ?? '') ?? [];
  const named = name === undefined ? undefined : decodePath(raw);
  return named === undefined || name !== 'prefix' ? named : `${withoutSlashesAtEnd(named)}/`;
}

/** Returns a raw ePIC v2 handle or prefix without the slash that clients send after it. */
export function rawHandleOfV2(raw: string): string {
  const bare = raw.replace(/\/$/, '');
  // In `P//` the second slash is the suffix, not the tolerated trailing slash of the collection `P/`.
  return /^[^/]+\/$/.test(bare) ? raw : bare;
}

/** Returns the handle that a redirect resolves, which has no fragment. */
function handleOfRedirect({ target }: Place): string | undefined {
  const [path = ''] = target.path.split('#', 1);
  const text = handleInUrl(decodePath(path) ?? '');
  return text === '' ? undefined : text;
}

function decodePath(rawHandle: string): string | undefined {
  const parsed = parseHandle(rawHandle);
  return parsed.ok ? parsed.handle : undefined;
}

export function resultOf(resolution: Resolution, { authoritative }: { authoritative: boolean }): ReadResult {
  if (resolution.kind === 'refused') return 'refused';
  if (authoritative) return 'authoritative';
  if (resolution.stale !== undefined) return 'stale';
  return resolution.from === 'upstream' ? 'miss' : 'hit';
}

/** Whether the handle exists; undefined for a refusal. */
export const existsBy = (resolution: Resolution): boolean | undefined =>
  resolution.kind === 'entry' ? resolution.entry.kind !== 'not-found' : undefined;

/** Keeps the answer of an anonymous read in the context, for the log and metrics. */
export function noteRead(
  context: RequestContext,
  resolution: Resolution,
  query: { authoritative: boolean },
): void {
  context.result = resultOf(resolution, query);
  context.exists = existsBy(resolution);
}

/** Returns the request id, generated on first use because a hit needs none. */
export const requestIdOf = (context: RequestContext): string => (context.requestId ??= randomUUID());

/** Does so for any response; undefined before the first step, and on the admin listener, which sets other `locals`. */
export function findRequestId(res: ServerResponse): string | undefined {
  const { locals } = res as unknown as { locals?: RequestContext };
  return locals?.client && requestIdOf(locals);
}

/** The parameters and the format of requests without a query, which most are. */
const NO_PARAMETERS = new URLSearchParams();
const COMPACT: Format = { pretty: false };

/** Whether a read wants only a stored response (RFC 9111 section 5.2.1.7). */
const isOnlyIfCached = ({ method, headers }: IncomingMessage): boolean =>
  (method === 'GET' || method === 'HEAD') &&
  /(?:^|,)\s*only-if-cached\s*(?:,|$)/i.test(headers['cache-control'] ?? '');

/** Creates the first step of a request. Afterwards `req.url` is what Express matches; the context has the raw target. */
export function createOpenContext(
  acceptRequestId: AcceptRequestId,
  findClient: (req: IncomingMessage) => Client,
  sendRaw: SendRaw,
  slicer: TimeSlicer,
): Listener {
  return function openContext(req, res) {
    const target = readTarget(req.url ?? '');
    const client = findClient(req);
    const hasQuery = target.query !== '';
    const parameters = hasQuery ? parseParameters(target.query) : NO_PARAMETERS;
    (res as unknown as { locals: RequestContext }).locals = {
      target,
      match: undefined,
      family: ownerOf(target.path),
      parameters,
      format: hasQuery ? readFormat(parameters) : COMPACT,
      onlyIfCached: isOnlyIfCached(req),
      result: 'local',
      client,
      runSteps: new RequestWork(slicer, client.network, () => signalOfLeaving(res)).run,
      requestId: acceptRequestId(req.headers['x-request-id']?.toString(), req),
      sendRaw,
    };
    req.url = routableTarget(target);
  };
}

/** Header in requests from trusted proxies, forwarded requests and error responses. */
export const REQUEST_ID = 'X-Request-Id';

/** Ids that web servers generate (UUID, hex, Base64, address and counter): safe in a log line, a header and a page. */
const FORMAT = /^[\w.:=+/@-]{1,128}$/;

/** Returns the received id; undefined if it is invalid or not from a trusted proxy. */
type AcceptRequestId = (given: string | undefined, req: IncomingMessage) => string | undefined;

export const createAcceptRequestId =
  (isTrustedProxy: (address: string) => boolean): AcceptRequestId =>
  (given, { socket }) =>
    given !== undefined && isTrustedProxy(socket.remoteAddress ?? '') && FORMAT.test(given)
      ? given
      : undefined;
