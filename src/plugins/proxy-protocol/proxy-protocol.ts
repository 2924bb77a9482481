// Takes the PROXY header from the start of each connection, before the HTTP server gets it.
import type { Socket } from 'node:net';
import { onceAMinute } from '../../clock.js';
import type { Host } from '../../host.js';
import type { Started } from '../../plugin.js';
import { compileTrust } from '../../http/client-address.js';
import { type ProxyHeader, parseProxyHeader } from './header.js';
import { METRICS, type ProxyProtocolConfig, type RejectionReason } from './plugin.js';

export function start(host: Host, { proxyProtocol }: ProxyProtocolConfig): Started {
  const { from, headerTimeoutMs, maxWaiting } = proxyProtocol;
  const isTrusted = compileTrust(from);
  const report = createReport(host);
  let waiting = 0;
  return {
    connection(socket, serve) {
      // A disconnected client has no address.
      const peer = socket.remoteAddress ?? '';
      const reject = (reason: RejectionReason): void => {
        if (peer !== '') report(reason, peer);
        socket.destroy();
      };
      // By address and not by content, because anyone can send a header.
      if (!isTrusted(peer)) reject('untrusted');
      else if (waiting >= maxWaiting) reject('limit');
      else {
        waiting++;
        receiveHeader(socket, headerTimeoutMs, (received) => {
          waiting--;
          if (received === 'closed') socket.destroy();
          else if (typeof received === 'string') reject(received);
          else {
            const { client: value } = received;
            // Everything that reads the address of the peer gets that of the client.
            if (value !== undefined) Object.defineProperty(socket, 'remoteAddress', { value });
            serve();
          }
        });
      }
    },
  };
}

type HeaderResult = ProxyHeader | 'invalid' | 'timeout' | 'closed';

/** Reads up to the end of the header, and puts back what follows it. */
function receiveHeader(socket: Socket, timeoutMs: number, settle: (received: HeaderResult) => void): void {
  let received: Buffer = Buffer.alloc(0);
  const end = (result: HeaderResult): void => {
    clearTimeout(timer);
    socket.off('readable', read).off('end', close).off('close', close).off('error', awaitClose);
    settle(result);
  };
  const timer = setTimeout(end, timeoutMs, 'timeout');
  const close = (): void => end('closed');
  function read(): void {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) return;
    received = Buffer.concat([received, chunk]);
    const header = parseProxyHeader(received);
    if (header === 'incomplete') return;
    if (header !== 'invalid' && header.length < received.length)
      socket.unshift(received.subarray(header.length));
    end(header);
  }
  socket.on('readable', read).on('end', close).on('close', close).on('error', awaitClose);
}

/** `close` follows. */
const awaitClose = (): void => undefined;

const REMEDIES: Readonly<Record<RejectionReason, string>> = {
  untrusted: 'name the balancer in proxyProtocol.from; direct clients cannot connect while it is set',
  invalid: 'let the balancer send the PROXY protocol (send-proxy), or clear proxyProtocol.from',
  timeout: 'let the balancer send the PROXY protocol (send-proxy), or clear proxyProtocol.from',
  limit: 'check why the balancer opens connections without sending a header',
};

function createReport({ log, metrics, clock }: Host): (reason: RejectionReason, peer: string) => void {
  const count = metrics.counterOf(METRICS.rejections);
  const warn = onceAMinute(clock, (closed, reason: RejectionReason, peer: string) => {
    log.warn({ reason, peer, closed, remedy: REMEDIES[reason] }, 'connections without a PROXY header closed');
  });
  return function report(reason, peer) {
    count({ reason });
    warn(reason, peer);
  };
}
