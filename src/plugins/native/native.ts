// Answers native messages over TCP, UDP and the HTTP tunnel.
import type { ServerResponse } from 'node:http';
import type { HandlerParts, Started } from '../../plugin.js';
import type { Host } from '../../host.js';
import type { HandleRef } from '../../handle/handle.js';
import type { PluginListener } from '../../hooks.js';
import { contextOf } from '../../http/context.js';
import { NOSNIFF } from '../../http/raw-response.js';
import type { Listener } from '../../http/route-table.js';
import { createExchangeDrain } from '../../server/drain.js';
import { createAnswer, createResolve, type Incoming, type NativeAnswer } from './answer.js';
import { decodeEnvelope, ENVELOPE_BYTES, frame } from './codec.js';
import { MESSAGE_TYPE, type NativeConfig } from './plugin.js';
import { PreparedMessages } from './prepared-messages.js';
import { cutOff, existsByCode, type MessageProblem, problemOfLength } from './reply.js';
import { createProvedSenders, createUdpListener } from './udp.js';
import { createSiteInfo } from './site-record.js';
import { createTcpServer } from './tcp.js';

export function start(host: Host, settings: NativeConfig): Started {
  const answer = createNative(host, settings);
  return {
    handlers: (parts) => ({ tunnel: createTunnelRoute(answer, parts) }),
    listeners: createListeners(host, settings, answer),
  };
}

/** Creates the message handling, independent of the transport. */
export function createNative(host: Host, settings: NativeConfig): NativeAnswer {
  const site = createSiteInfo(settings, host);
  return createAnswer(host, new PreparedMessages(host, site), createResolve(host), site);
}

function createListeners(host: Host, config: NativeConfig, native: NativeAnswer): PluginListener[] {
  const { server, native: own } = config;
  const { tcp, udp } = own;
  const proved = createProvedSenders(host.clock.now);
  const address = own.host ?? server.host;
  const listeners: PluginListener[] = [];
  if (tcp.port !== undefined) {
    const { maxConnectionsPerNetwork } = server;
    const tcpServer = createTcpServer({ ...tcp, maxConnectionsPerNetwork }, host, native, proved.add);
    listeners.push({
      name: 'nativeTcp',
      scheme: 'tcp',
      keys: { host: 'native.host', port: 'native.tcp.port' },
      at: { host: address, port: tcp.port, reusePort: server.reusePort },
      socket: tcpServer,
      drain: createExchangeDrain(tcpServer),
    });
  }
  if (udp.port !== undefined) {
    const { socket, drain } = createUdpListener(config, host, native, proved.has);
    listeners.push({
      name: 'nativeUdp',
      scheme: 'udp',
      keys: { host: 'native.host', port: 'native.udp.port' },
      at: { host: address, port: udp.port },
      socket,
      drain,
    });
  }
  return listeners;
}

// HTTP tunnel: native requests in POST bodies, native responses in response bodies.

const LINE_FEED = 0x0a;

function createTunnelRoute(native: NativeAnswer, { withBody, refusalOfHandle }: HandlerParts): Listener {
  return async function tunnel(req, res) {
    const context = contextOf(res);
    await withBody(req, async (body) => {
      // The POST has already been judged, except for its handle.
      const refusalOf = refusalOfHandle && ((handle: HandleRef) => refusalOfHandle(req, handle));
      const answer = (): ReturnType<NativeAnswer['answer']> => {
        const incoming = readTunnelled(body);
        if ('text' in incoming) return native.refuse(incoming);
        return native.answer({ ...incoming, admit: () => context.caller, refusalOf });
      };
      // Infinity, because the record's size and the number of selected values are unknown.
      const { reply, handle, outcome } = await context.runSteps(answer, Infinity);
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
  const envelope = decodeEnvelope(bytes);
  const problem = problemOfLength(envelope.length, 'tunnel');
  if (problem !== undefined) return problem;
  const rest = bytes.subarray(ENVELOPE_BYTES);
  if (rest.length < envelope.length) return cutOff(envelope.length, rest.length);
  const message = rest.subarray(0, envelope.length);
  return { envelope, message, transport: 'tunnel', received: bytes };
}

/** The headers are for intermediaries: clients read the message after the first empty line. */
function sendMessage(res: ServerResponse, message: Buffer): void {
  res.writeHead(200, {
    'Content-Type': MESSAGE_TYPE,
    'Content-Length': message.length,
    'Cache-Control': 'no-store',
    ...NOSNIFF,
  });
  res.end(message);
}
