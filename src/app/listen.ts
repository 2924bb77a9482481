// Opens the listeners. A failure names the configuration key and the remedy.
import type { NativeListeners } from '../native/native.js';
import { Socket } from 'node:dgram';
import type { AddressInfo, Server } from 'node:net';
import { configKeys } from './config.js';
import type { Config } from '../config/schema.js';
import { createExchangeDrain } from '../server/drain.js';

/** An unusable listen address. */
export class ListenError extends Error {}

interface ListenAddress {
  host: string;
  port: number;
  /** Whether other processes may share the TCP port. UDP sockets set this option at creation. */
  reusePort?: boolean;
}

const LISTENERS = {
  server: { scheme: 'http', host: 'server.host', port: 'server.port' },
  admin: { scheme: 'http', host: 'admin.host', port: 'admin.port' },
  nativeTcp: { scheme: 'tcp', host: 'native.host', port: 'native.tcp.port' },
  nativeUdp: { scheme: 'udp', host: 'native.host', port: 'native.udp.port' },
} as const;

type ListenerKey = keyof typeof LISTENERS;

/**
 * Opens a listener. Returns its URL with the actual port.
 *
 * @throws ListenError when the address is unusable
 */
export async function listen(server: Server | Socket, name: ListenerKey, at: ListenAddress): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(new ListenError(describeListenFailure(name, at, error), { cause: error }));
    });
    if (server instanceof Socket) server.bind(at.port, at.host, resolve);
    else server.listen(listenOptions(at), resolve);
  });
  const { address, port } = server.address() as AddressInfo;
  return `${LISTENERS[name].scheme}://${inUrl(address)}:${port}`;
}

/** Omits `reusePort` unless it is set, because the Node.js 20 types do not include it. */
const listenOptions = ({ host, port, reusePort = false }: ListenAddress): ListenAddress => ({
  host,
  port,
  ...(reusePort && { reusePort }),
});

const inUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host);

export function describeListenFailure(
  name: ListenerKey,
  { host, port }: ListenAddress,
  { code, message }: Pick<NodeJS.ErrnoException, 'code' | 'message'>,
): string {
  const { host: hostKey, port: portKey } = LISTENERS[name];
  const remedy = remedyOf(code, keyWithVariable(hostKey), keyWithVariable(portKey));
  return `Cannot listen on ${inUrl(host)}:${port} (${code ?? message}): ${remedy}`;
}

function remedyOf(code: string | undefined, hostKey: string, portKey: string): string {
  switch (code) {
    case 'EADDRINUSE':
      return `another program uses this port. Stop it, or set ${portKey} to another port.`;
    case 'EACCES':
      return `this user may not open this port. Set ${portKey} to one above 1023, or grant CAP_NET_BIND_SERVICE.`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the host name is unknown. Set ${hostKey} to an address of this machine.`;
    case 'EADDRNOTAVAIL':
    case 'EAFNOSUPPORT':
    case 'EINVAL':
      return `this machine does not have the address. Set ${hostKey} to one of its addresses.`;
    default:
      return `check ${hostKey} and ${portKey}.`;
  }
}

/** Formats a key with its variable, for example `server.port (PORT)`. */
function keyWithVariable(key: string): string {
  const variable = configKeys().find((known) => known.key === key)?.variable;
  return `${key} (${variable ?? ''})`;
}

/** URLs of the enabled native listeners. */
export interface NativeAddresses {
  nativeTcp?: string;
  nativeUdp?: string;
}

interface OpenNative {
  addresses: NativeAddresses;
  drain: (timeoutMs: number) => Promise<void>;
}

/** Opens the enabled native listeners. @throws ListenError when an address is unusable */
export async function openNative(
  { native, server }: Config,
  { tcp, udp }: NativeListeners,
): Promise<OpenNative> {
  const host = native.host ?? server.host;
  const addresses: NativeAddresses = {};
  const drains: OpenNative['drain'][] = [];
  if (tcp !== undefined) {
    drains.push(createExchangeDrain(tcp));
    addresses.nativeTcp = await listen(tcp, 'nativeTcp', {
      host,
      port: native.tcp.port ?? 0,
      reusePort: server.reusePort,
    });
  }
  if (udp !== undefined) {
    drains.push(udp.drain);
    addresses.nativeUdp = await listen(udp.socket, 'nativeUdp', { host, port: native.udp.port ?? 0 });
  }
  return {
    addresses,
    async drain(timeoutMs) {
      await Promise.all(drains.map((drain) => drain(timeoutMs)));
    },
  };
}
