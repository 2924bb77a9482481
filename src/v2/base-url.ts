// The base URL of a request as the client sees it, even behind trusted proxies.
import type { IncomingMessage } from 'node:http';
import type { IsTrustedProxy } from '../server/client-address.js';

/**
 * Returns origin and path prefix, from `X-Forwarded-Proto`, `-Host` and `-Prefix` if the peer is in
 * `http.trustedProxies`.
 */
export function baseUrlOf(req: IncomingMessage, isTrustedProxy: IsTrustedProxy): string {
  const { socket, headers } = req;
  const isTrusted = isTrustedProxy(socket.remoteAddress ?? '');
  const forwarded = (name: string): string => {
    const [first = ''] = isTrusted ? (headers[`x-forwarded-${name}`] ?? '').toString().split(',', 1) : [];
    return first.trim();
  };
  const scheme = forwarded('proto') || ('encrypted' in socket ? 'https' : 'http');
  const host = forwarded('host') || headers.host;
  return `${scheme}://${isHost(host) ? host : addressOf(req)}${pathPrefix(forwarded('prefix'))}`;
}

/** Whether the host is valid; an HTTP/1.0 request may have none. */
const isHost = (host: string | undefined): host is string =>
  host !== undefined && /^(\[[\da-f:.]+\]|[\w.-]+)(:\d+)?$/i.test(host);

function addressOf({ socket }: IncomingMessage): string {
  const { localAddress = 'localhost', localPort = 0 } = socket;
  return `${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}

/** Returns the path that a proxy removed, without a slash at the end; empty if it is invalid. */
const pathPrefix = (given: string): string =>
  /^(\/[\w.~-]+)+\/?$/.test(given) ? given.replace(/\/$/, '') : '';
