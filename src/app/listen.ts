// Opens the listeners. A failure names the configuration key and the remedy.
import { Socket } from 'node:dgram';
import type { AddressInfo, Server } from 'node:net';
import { configKeys } from './config.js';
import type { ClosedListener, ListenAddress, PluginListener } from '../hooks.js';

export class ListenError extends Error {}

/** Opens a listener. Returns its URL. @throws ListenError when the address is unusable */
async function listen({ scheme, keys, at, socket }: ClosedListener): Promise<string> {
  const { host, port, reusePort = false } = at;
  // The Node.js 20 types do not include `reusePort`.
  const options: ListenAddress = { host, port, reusePort };
  await new Promise<void>((resolve, reject) => {
    socket.once('error', (error: NodeJS.ErrnoException) => {
      reject(new ListenError(describeListenFailure(keys, at, error), { cause: error }));
    });
    if (socket instanceof Socket) socket.bind(port, host, resolve);
    else socket.listen(options, resolve);
  });
  const opened = socket.address() as AddressInfo;
  return `${scheme}://${inUrl(opened.address)}:${opened.port}`;
}

/** Opens an HTTP listener with the address of its section. Returns its URL. @throws ListenError */
export const listenHttp = (socket: Server, section: 'server' | 'admin', at: ListenAddress): Promise<string> =>
  listen({ scheme: 'http', keys: { host: `${section}.host`, port: `${section}.port` }, at, socket });

const inUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host);

export function describeListenFailure(
  keys: ClosedListener['keys'],
  { host, port }: ListenAddress,
  { code, message }: { code?: string | undefined; message: string },
): string {
  const remedy = listenRemedy(code, keyWithVariable(keys.host), keyWithVariable(keys.port));
  return `Cannot listen on ${inUrl(host)}:${port} (${code ?? message}): ${remedy}`;
}

function listenRemedy(code: string | undefined, hostKey: string, portKey: string): string {
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

/** Opens the listeners of the plugins. Returns their URLs by name. @throws ListenError when an address is unusable */
export async function openListeners(listeners: readonly PluginListener[]): Promise<Record<string, string>> {
  const addresses: Record<string, string> = {};
  for (const listener of listeners) addresses[listener.name] = await listen(listener);
  return addresses;
}
