// Looks up hosts, and tunnels to them through the outgoing proxy.
import dns, { type LookupAddress, type LookupOptions } from 'node:dns';
import http from 'node:http';
import https from 'node:https';
import { isIP, isIPv6, type LookupFunction, type Socket } from 'node:net';
import type { buildConnector } from 'undici';
import { type Clock, systemClock, untilDeadline } from '../clock.js';
import { type OutgoingAddress, portOf } from '../config/outgoing-proxy.js';
import { PROXY_LOGIN, PROXY_REFUSED, PROXY_UNREACHABLE, codeOf } from './failure.js';

/** Connect timeout (ms), so that an unreachable server does not use up the whole request timeout. */
export const CONNECT_MS = 10_000;

export interface ConnectorOptions {
  lookup?: LookupFunction | undefined;
  /** Ends connections, also during the handshake. Node.js keeps each of them in memory for as long as the signal. */
  signal?: AbortSignal | undefined;
}

/** `timeoutMs` ends at the whole response of the proxy: a trickle of bytes does not prolong it. */
type TunnelOptions = ConnectorOptions & { timeoutMs: number };

/** Opens a tunnel through a proxy, also for plain http, so that a connection leads to one server only. */
export function openTunnel(
  proxy: URL,
  to: OutgoingAddress,
  { lookup, ...options }: TunnelOptions,
  opened: buildConnector.Callback,
): void {
  const host = withoutBrackets(to.hostname);
  const open = (address: string): void => {
    const authority = `${isIPv6(address) ? `[${address}]` : address}:${portOf(to)}`;
    requestTunnel(proxy, authority, options, opened);
  };
  if (lookup === undefined || isIP(host) !== 0) {
    open(host);
    return;
  }
  lookup(host, { all: false }, (error, address) => {
    if (error) opened(error, null);
    else if (typeof address === 'string') open(address);
  });
}

/** Sends CONNECT (RFC 9110 §9.3.6). */
function requestTunnel(
  proxy: URL,
  authority: string,
  { signal, timeoutMs }: TunnelOptions,
  opened: buildConnector.Callback,
): void {
  const fail = (code: string, reason: string): void =>
    opened(Object.assign(new Error(`${proxy.host}, ${reason}`), { code, proxyReason: reason }), null);
  const onError = (error: Error): void => fail(PROXY_UNREACHABLE, codeOf(error) ?? error.message);
  const request = (proxy.protocol === 'https:' ? https : http).request({
    ...{ host: withoutBrackets(proxy.hostname), port: portOf(proxy), method: 'CONNECT', path: authority },
    headers: { Host: authority, Connection: 'keep-alive', ...proxyLogin(proxy) },
    ...{ agent: false, lookup: lookupHost, ...(signal && { signal }) },
  });
  const late = setTimeout(() => {
    // A connected proxy may wait for the server.
    const isConnected = request.socket?.connecting === false;
    request.destroy(new Error(isConnected ? 'no response in time' : 'UND_ERR_CONNECT_TIMEOUT'));
  }, timeoutMs);
  request.once('close', () => clearTimeout(late));
  request.once('error', onError);
  request.once('connect', ({ statusCode: status = 0 }, socket: Socket, head) => {
    request.off('error', onError).on('error', () => undefined);
    // The server sends nothing before the client does, in TLS as in HTTP.
    const isOpen = status >= 200 && status < 300 && head.length === 0;
    if (isOpen) {
      opened(null, socket);
      return;
    }
    socket.destroy();
    fail(status === 407 ? PROXY_LOGIN : PROXY_REFUSED, `HTTP ${status}`);
  });
  request.end();
}

export function proxyLogin({ username, password }: URL): Record<string, string> {
  if (username === '') return {};
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'Proxy-Authorization': `Basic ${Buffer.from(login).toString('base64')}` };
}

export const withoutBrackets = (hostname: string): string => hostname.replace(/^\[|\]$/g, '');

/** Time after which known addresses are used instead of waiting for a name server (ms). */
const MAX_WAIT_MS = 1000;

/** The error code for a name that may exist, although no name server responds. */
const NO_NAME_SERVER = 'EAI_AGAIN';

const late = (): Error => Object.assign(new Error('no name server responds'), { code: NO_NAME_SERVER });

type LookUp = (host: string, options: LookupOptions) => Promise<LookupAddress[]>;

const lookUpBySystem: LookUp = (host, options) =>
  new Promise((resolve, reject) => {
    dns.lookup(host, { ...options, all: true }, (error, addresses) => {
      if (error) reject(error);
      else resolve(addresses);
    });
  });

/**
 * Creates a lookup that remembers the last addresses of each host, as RFC 8767 does for records: connections are closed
 * when they are idle, so without it an outage of the name servers would cut off servers that are up. The hosts are those of
 * the configuration, or of a list of links, so their number is bounded.
 */
export function createHostLookup(
  lookUp: LookUp = lookUpBySystem,
  clock: { after: Clock['after'] } = systemClock,
): LookupFunction {
  const known = new Map<string, LookupAddress[]>();
  /** One lookup at a time for each host, because each that hangs occupies a thread of Node.js. */
  const running = new Map<string, Promise<LookupAddress[]>>();

  function start(key: string, host: string, options: LookupOptions): Promise<LookupAddress[]> {
    const found = lookUp(host, options).finally(() => running.delete(key));
    running.set(key, found);
    return found.then((addresses) => {
      known.set(key, addresses);
      return addresses;
    });
  }

  async function addressesOf(host: string, options: LookupOptions): Promise<LookupAddress[]> {
    const key = `${options.family ?? 0} ${options.hints ?? 0} ${host}`;
    const found = running.get(key) ?? start(key, host, options);
    const last = known.get(key);
    if (last === undefined) return found;
    return untilDeadline(found, MAX_WAIT_MS, late, clock).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === NO_NAME_SERVER) return last;
      throw error;
    });
  }

  return (host, options, found) => {
    addressesOf(host, options).then(
      (addresses) => {
        const [first] = addresses;
        if (options.all === true) found(null, addresses);
        else found(null, first?.address ?? '', first?.family);
      },
      (error: unknown) => found(error as NodeJS.ErrnoException, ''),
    );
  };
}

/** The lookup of all servers that the configuration names. */
export const lookupHost = createHostLookup();
