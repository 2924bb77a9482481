// HTTP tunnel: native requests in POST bodies, native responses in response bodies.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { type RequestContext, type AcceptRequestId, contextOf } from '../http/context.js';
import type { ScanHeaders } from '../http/fast-headers.js';
import type { Listener, RefusalOfHandle } from '../http/guard.js';
import { type HeaderLines, NOSNIFF, createSendRaw, linesOf } from '../http/raw-response.js';
import type { WithBody } from '../http/request-body.js';
import type { RunStepsOf } from '../http/request-work.js';
import type { Place } from '../http/route-table.js';
import type { RequestCheck } from '../http/request-check.js';
import { inOneStep } from '../time-slicer.js';
import type { NativeAnswer } from './answer.js';
import { ENVELOPE_BYTES, decodeEnvelope, frame } from './codec.js';
import { MAX_REQUEST_BYTES } from './prepared-messages.js';
import { type AnsweredMessage, cutOff, problemOfLength, existsBy } from './reply.js';
import type { TunnelRequest } from './message-log.js';
import { MESSAGE_TYPE, namesMessage, takesMessages } from './routes.js';

const LINE_FEED = 0x0a;

interface TunnelDeps extends NativeAnswer {
  withBody: WithBody;
  runStepsOf: RunStepsOf;
  refusalOfHandle: RefusalOfHandle | undefined;
}

export function createTunnelRoute(deps: TunnelDeps): Listener {
  return async function tunnel(req, res) {
    const context = contextOf(res);
    await deps.withBody(req, async (body) => {
      const answering = inOneStep(() => receive(body, deps, { caller: context.caller, req }));
      // Infinity, because the record's size and the number of selected values are unknown.
      const { reply, handle, outcome } = await deps.runStepsOf(res)(answering, Infinity);
      const { result } = outcome;
      Object.assign(context, { result, exists: existsBy(outcome), ...(handle !== undefined && { handle }) });
      if (outcome.failure) context.failure = outcome.failure;
      sendMessage(res, frame(reply.envelope, reply.message));
    });
  };
}

function receive(
  body: Buffer,
  { answer, refuse, refusalOfHandle }: TunnelDeps,
  { caller, req }: { caller: RequestContext['caller']; req: IncomingMessage },
): AnsweredMessage | Promise<AnsweredMessage> {
  const bytes = body[0] === LINE_FEED ? body.subarray(1) : body;
  const isShort = bytes.length < ENVELOPE_BYTES;
  const envelope = decodeEnvelope(isShort ? Buffer.alloc(ENVELOPE_BYTES) : bytes);
  const problem = problemOfLength(envelope.length, 'tunnel');
  if (problem !== undefined) return refuse(problem);
  const rest = bytes.subarray(ENVELOPE_BYTES);
  if (rest.length < envelope.length) return refuse(cutOff(envelope.length, rest.length));
  const message = rest.subarray(0, envelope.length);
  return answer({
    envelope,
    message,
    transport: 'tunnel',
    received: bytes,
    // The traffic rules have already checked the POST, except for rules that match handles.
    admit: () => caller,
    refusalOf: refusalOfHandle && ((handle) => refusalOfHandle(req, handle)),
  });
}

interface TunnelHitParts extends Pick<NativeAnswer, 'answerPrepared'>, Pick<TunnelDeps, 'refusalOfHandle'> {
  scanHeaders: ScanHeaders;
  check: RequestCheck;
  acceptRequestId: AcceptRequestId;
}

/** False leaves the request untouched for the pipeline. */
type TunnelHit = (req: IncomingMessage, res: ServerResponse, place: Place) => false | Promise<boolean>;

/**
 * Creates the fast path: serves prepared responses without Express if the body arrived with the headers.
 * Undefined if the tunnel is disabled or a traffic rule matches handles.
 */
export function createTunnelHit(
  { native }: Pick<Config, 'native'>,
  { clock: { now } }: Context,
  parts: TunnelHitParts,
): TunnelHit | undefined {
  const { answerPrepared, refusalOfHandle, scanHeaders, check, acceptRequestId } = parts;
  // A traffic rule that matches handles must check every message.
  if (!native.tunnel || refusalOfHandle !== undefined) return undefined;
  const sendRaw = createSendRaw();

  async function answerIfPrepared(
    req: IncomingMessage,
    res: ServerResponse,
    { bodyBytes, post }: { bodyBytes: number; post: TunnelRequest },
  ): Promise<boolean> {
    // Lets Node parse a body that arrived with the headers.
    await Promise.resolve();
    if (req.readableLength !== bodyBytes) return false;
    const body = req.read() as Buffer;
    const message = answerPrepared(body, 'tunnel', { post });
    if (message === undefined) {
      req.unshift(body);
      return false;
    }
    sendRaw(res, { status: 200, lines: linesFor(message), body: message.toString('latin1') }, now());
    return true;
  }

  return function tunnelHit(req, res, place) {
    const { method, url = '', rawHeaders } = req;
    if (method !== 'POST' || !takesMessages(place)) return false;
    const bodyBytes = bytesOfTunnelled(rawHeaders);
    if (bodyBytes === undefined || !(bodyBytes > 0 && bodyBytes <= MAX_REQUEST_BYTES)) return false;
    const headers = scanHeaders(rawHeaders);
    if (headers.origin !== undefined || check(req, url, headers) !== undefined) return false;
    const post = { target: url, requestId: acceptRequestId(headers.requestId, req) };
    return answerIfPrepared(req, res, { bodyBytes, post });
  };
}

/** Returns the `Content-Length` of a tunnel request; undefined for any other request. */
function bytesOfTunnelled(rawHeaders: readonly string[]): number | undefined {
  const isForTunnel = ['content-type', 'accept'].every((name) => namesMessage(first(rawHeaders, name)));
  const length = isForTunnel ? first(rawHeaders, 'content-length') : undefined;
  return length === undefined ? undefined : Number(length);
}

/** Returns the value of the first header with this name. Avoids building `req.headers`. */
function first(rawHeaders: readonly string[], name: string): string | undefined {
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const given = rawHeaders[at];
    if (given?.length === name.length && given.toLowerCase() === name) return rawHeaders[at + 1];
  }
  return undefined;
}

/**
 * Returns the response headers, for intermediaries only: clients ignore status and headers, and read the
 * message after the first empty line.
 */
const headersOf = ({ length }: Buffer): [name: string, value: string][] => [
  ['Content-Type', MESSAGE_TYPE],
  ['Content-Length', String(length)],
  ['Cache-Control', 'no-store'],
];

const [TYPE_LINE, CACHE_LINE] = [
  linesOf(['Content-Type', MESSAGE_TYPE]),
  linesOf(['Cache-Control', 'no-store']),
];

/** Formats `headersOf` as lines without validating them per response. */
const linesFor = ({ length }: Buffer): HeaderLines =>
  `${TYPE_LINE}Content-Length: ${length}\r\n${CACHE_LINE}` as HeaderLines;

function sendMessage(res: ServerResponse, message: Buffer): void {
  res.writeHead(200, { ...Object.fromEntries(headersOf(message)), ...NOSNIFF });
  res.end(message);
}
