// The HTTP tunnel: a native message in the body of a POST, its answer in the body of the response.
import type { Request, RequestHandler, Response } from 'express';
import { type RequestContext, contextOf } from '../http/context.js';
import type { WithBody } from '../http/request-body.js';
import type { Answered, NativeAnswer } from './answer.js';
import { ENVELOPE_BYTES, decodeEnvelope } from './codec/envelope.js';
import { frame } from './codec/message.js';
import { cutOff, problemOfLength } from './unreadable.js';

const MESSAGE_TYPE = 'application/x-hdl-message';
const LINE_FEED = 0x0a;

/** Both headers name the type, in any case (recordings "tunnel: no Accept", "tunnel: Content-Type in capitals"). */
const isTunnelled = ({ headers }: Request): boolean =>
  [headers.accept, headers['content-type']].every((value) => value?.toLowerCase().includes(MESSAGE_TYPE));

interface TunnelDeps extends NativeAnswer {
  withBody: WithBody;
}

/** Leaves every other POST to the next route. */
export function createTunnelRoute(deps: TunnelDeps): RequestHandler {
  return async function tunnel(req, res, next) {
    if (!isTunnelled(req)) {
      next();
      return;
    }
    const context = contextOf(res);
    context.family = 'native-tunnel';
    await deps.withBody(req, async (body) => {
      const { reply, handle, outcome } = await receive(body, deps, context.caller);
      Object.assign(context, { result: outcome.result, ...(handle !== undefined && { handle }) });
      if (outcome.failure) context.failure = outcome.failure;
      sendMessage(res, frame(reply.envelope, reply.message));
    });
  };
}

function receive(
  body: Buffer,
  { answer, refuse }: NativeAnswer,
  caller: RequestContext['caller'],
): Answered | Promise<Answered> {
  const bytes = body[0] === LINE_FEED ? body.subarray(1) : body;
  const isShort = bytes.length < ENVELOPE_BYTES;
  const envelope = decodeEnvelope(isShort ? Buffer.alloc(ENVELOPE_BYTES) : bytes);
  const problem = problemOfLength(envelope.length, 'tunnel');
  if (problem !== undefined) return refuse(problem);
  const rest = bytes.subarray(ENVELOPE_BYTES);
  if (rest.length < envelope.length) return refuse(cutOff(envelope.length, rest.length));
  return answer({ envelope, message: rest.subarray(0, envelope.length), transport: 'tunnel', caller });
}

/** Clients look at neither status nor headers, and take all after the first empty line for the message. */
function sendMessage(res: Response, message: Buffer): void {
  res.writeHead(200, {
    'Content-Type': MESSAGE_TYPE,
    'Content-Length': message.length,
    'Cache-Control': 'no-store',
  });
  res.end(message);
}
