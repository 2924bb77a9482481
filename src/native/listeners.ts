// The listeners of the native protocol that are on; none is open.
import type { Server } from 'node:net';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { createProvedSenders } from './proved-senders.js';
import { type TcpParts, createTcpServer } from './tcp.js';
import { type UdpListener, createUdpListener } from './udp.js';

export interface NativeListeners {
  /** Undefined unless it is on. */
  tcp: Server | undefined;
  udp: UdpListener | undefined;
}

export function createNativeListeners(
  { native: { tcp, udp, host }, server }: Pick<Config, 'native' | 'server'>,
  context: Context,
  parts: Omit<TcpParts, 'onMessage'>,
): NativeListeners {
  const proved = createProvedSenders(context.clock.now);
  const udpSettings = { ...udp, host: host ?? server.host, reusePort: server.reusePort };
  const { native } = parts;
  return {
    tcp:
      tcp.port === undefined ? undefined : createTcpServer(tcp, context, { ...parts, onMessage: proved.add }),
    udp:
      udp.port === undefined
        ? undefined
        : createUdpListener(udpSettings, context, { native, isProved: proved.has }),
  };
}
