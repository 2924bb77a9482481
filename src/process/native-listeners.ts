// Opens the native listeners, and closes them without losing an answer.
import type { NativeListeners } from '../native/native.js';
import type { Config } from '../config/schema.js';
import { createExchangeDrain } from '../server/drain.js';
import { listen } from './listen.js';

/** Of the listeners that are on. */
export interface NativeAddresses {
  nativeTcp?: string;
  nativeUdp?: string;
}

interface OpenNative {
  addresses: NativeAddresses;
  drain: (timeoutMs: number) => Promise<void>;
}

/** @throws StartError when an address cannot be used */
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
