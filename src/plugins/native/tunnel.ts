// HTTP tunnel: native requests in POST bodies, native responses in response bodies.
import type { ServerResponse } from 'node:http';
import { contextOf } from '../../http/context.js';
import type { Listener } from '../../http/route-table.js';
import { NOSNIFF } from '../../http/raw-response.js';
import { inOneStep } from '../../time-slicer.js';
import type { HandleRef } from '../../handle/handle.js';
import type { HandlerParts, Host } from '../../app/plugin.js';
import type { Incoming, NativeAnswer } from './answer.js';
import { ENVELOPE_BYTES, decodeEnvelope, frame } from './codec.js';
import { type MessageProblem, cutOff, problemOfLength, existsByCode } from './reply.js';
import { MESSAGE_TYPE } from './plugin.js';

const LINE_FEED = 0x0a;

export function createTunnelRoute(
  native: NativeAnswer,
  { runStepsOf }: Host,
  { withBody, refusalOfHandle }: HandlerParts,
): Listener {
  return async function tunnel(req, res) {
    const context = contextOf(res);
    await withBody(req, async (body) => {
      // The traffic rules have already judged the POST, except for rules that match handles.
      const refusalOf = refusalOfHandle && ((handle: HandleRef) => refusalOfHandle(req, handle));
      const answering = inOneStep(() => {
        const incoming = readTunnelled(body);
        if ('text' in incoming) return native.refuse(incoming);
        return native.answer({ ...incoming, admit: () => context.caller, refusalOf });
      });
      // Infinity, because the record's size and the number of selected values are unknown.
      const { reply, handle, outcome } = await runStepsOf(res)(answering, Infinity);
      const { result } = outcome;
      Object.assign(context, {
        result,
        exists: existsByCode(outcome),
        ...(handle !== undefined && { handle }),
      });
      if (outcome.failure) context.failure = outcome.failure;
      sendMessage(res, frame(reply.envelope, reply.message));
    });
  };
}

function readTunnelled(body: Buffer): Incoming | MessageProblem {
  const bytes = body[0] === LINE_FEED ? body.subarray(1) : body;
  const isShort = bytes.length < ENVELOPE_BYTES;
  const envelope = decodeEnvelope(isShort ? Buffer.alloc(ENVELOPE_BYTES) : bytes);
  const problem = problemOfLength(envelope.length, 'tunnel');
  if (problem !== undefined) return problem;
  const rest = bytes.subarray(ENVELOPE_BYTES);
  if (rest.length < envelope.length) return cutOff(envelope.length, rest.length);
  const message = rest.subarray(0, envelope.length);
  return { envelope, message, transport: 'tunnel', received: bytes };
}

/**
 * The headers are for intermediaries only: clients ignore status and headers, and read the message after the
 * first empty line.
 */
function sendMessage(res: ServerResponse, message: Buffer): void {
  res.writeHead(200, {
    'Content-Type': MESSAGE_TYPE,
    'Content-Length': message.length,
    'Cache-Control': 'no-store',
    ...NOSNIFF,
  });
  res.end(message);
}
