// Creates the native protocol: message handling and the enabled listeners.
import type { PreparedCache } from '../cache/prepared-cache.js';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import type { Hits } from '../observe/hits.js';
import { type NativeAnswer, createAnswer } from './answer.js';
import type { Resolver } from '../resolver/resolver.js';
import { PreparedMessages } from './prepared-messages.js';
import { type ResolveParts, createResolve } from './resolve.js';
import { createSiteInfo } from './site-record.js';
import type { Server } from 'node:net';
import { createProvedSenders } from './sender-limits.js';
import { type TcpParts, createTcpServer } from './tcp.js';
import { type UdpListener, createUdpListener } from './udp.js';

interface NativeParts extends ResolveParts {
  resolver: Pick<Resolver<unknown>, 'read' | 'resolve' | 'refOf' | 'isLargeInMemory'>;
  preparedCache: () => PreparedCache;
  hits: Hits;
}

export function createNative(
  config: Pick<Config, 'native' | 'server' | 'upstream'>,
  context: Context,
  parts: NativeParts,
): NativeAnswer {
  const site = createSiteInfo(config, parts.resolver);
  return createAnswer(context, {
    ...parts,
    resolve: createResolve(config, context, parts),
    prepared: new PreparedMessages(context, { ...parts, site }),
    site,
  });
}

export interface NativeListeners {
  /** Undefined without a configured port. */
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
  const { native, slicer } = parts;
  return {
    tcp:
      tcp.port === undefined ? undefined : createTcpServer(tcp, context, { ...parts, onMessage: proved.add }),
    udp:
      udp.port === undefined
        ? undefined
        : createUdpListener(udpSettings, context, { native, slicer, isProved: proved.has }),
  };
}
