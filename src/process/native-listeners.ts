// Opens the native listeners, and closes them without losing an answer.
import type { NativeListeners } from '../compose/native-listeners.js';
import type { Config } from '../config/schema.js';
import { type DrainOptions, createExchangeDrain } from '../server/drain.js';
import { listen } from './listen.js';

/** Of the listeners that are on. */
export interface NativeAddresses {
  nativeTcp?: string;
}

interface OpenNative {
  addresses: NativeAddresses;
  drain: (timeoutMs: number) => Promise<void>;
}

/** @throws StartError when an address cannot be used */
export async function openNative(
  { native, server }: Config,
  { tcp }: NativeListeners,
  closing: DrainOptions,
): Promise<OpenNative> {
  const host = native.host ?? server.host;
  if (tcp === undefined) return { addresses: {}, drain: () => Promise.resolve() };
  const drain = createExchangeDrain(tcp, closing);
  const nativeTcp = await listen(tcp, 'nativeTcp', { host, port: native.tcp.port ?? 0 });
  return { addresses: { nativeTcp }, drain };
}
