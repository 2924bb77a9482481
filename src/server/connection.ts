// What a client may do to its connection without losing an answer, where Node would lose one.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { refuseConnect } from './parse-error.js';

/** To be called when the listeners of the server are there. */
export function keepAnswers(server: Server): void {
  // A client that has closed its side only (TCP half-close, as `nc -N` does) still reads. Node would close the other.
  Object.assign(server, { httpAllowHalfOpen: true });
  for (const event of ['request', 'checkContinue']) {
    // Node sees to `Expect` by itself where nobody listens for it.
    if (server.listenerCount(event) > 0) server.prependListener(event, closeAfterUpgrade);
  }
  server.on('connect', refuseConnect);
}

/**
 * No other protocol is offered, so `Upgrade` is ignored (RFC 9110 §7.8). But Node's parser stops behind such a
 * request and drops the rest of the packet: the next answer would be taken for that of a dropped request. So this
 * is the last one of its connection, which tells the client to send the rest again (RFC 9112 §9.6).
 */
function closeAfterUpgrade({ rawHeaders }: IncomingMessage, res: ServerResponse): void {
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === UPGRADE.length && name.toLowerCase() === UPGRADE) res.shouldKeepAlive = false;
  }
}

const UPGRADE = 'upgrade';
