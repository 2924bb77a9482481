// Answers native messages over TCP, UDP and the HTTP tunnel.
import type { Host, Started } from '../../app/plugin.js';
import type { PluginListener } from '../../hooks.js';
import { createExchangeDrain } from '../../server/drain.js';
import { type NativeAnswer, createAnswer } from './answer.js';
import type { NativeConfig } from './plugin.js';
import { PreparedMessages } from './prepared-messages.js';
import { createResolve } from './resolve.js';
import { createProvedSenders } from './sender-limits.js';
import { createSiteInfo } from './site-record.js';
import { createTcpServer } from './tcp.js';
import { createTunnelRoute } from './tunnel.js';
import { createUdpListener } from './udp.js';

export function start(host: Host, settings: NativeConfig): Started {
  const answer = createNative(host, settings);
  return {
    handlers: (parts) => ({ tunnel: createTunnelRoute(answer, host, parts) }),
    listeners: createListeners(host, settings, answer),
  };
}

/** Creates the message handling, independent of the transport. */
export function createNative(host: Host, settings: NativeConfig): NativeAnswer {
  const site = createSiteInfo(settings, host.resolver);
  return createAnswer(host, new PreparedMessages(host, site), createResolve(host), site);
}

/** Creates the listeners that have a port. */
function createListeners(host: Host, config: NativeConfig, native: NativeAnswer): PluginListener[] {
  const {
    server,
    native: { tcp, udp, host: ownHost },
  } = config;
  const proved = createProvedSenders(host.clock.now);
  const address = ownHost ?? server.host;
  const listeners: PluginListener[] = [];
  if (tcp.port !== undefined) {
    const { maxConnectionsPerNetwork } = server;
    const tcpServer = createTcpServer({ ...tcp, maxConnectionsPerNetwork }, host, native, proved.add);
    listeners.push({
      name: 'nativeTcp',
      scheme: 'tcp',
      keys: { host: 'native.host', port: 'native.tcp.port' },
      at: { host: address, port: tcp.port, reusePort: server.reusePort },
      socket: tcpServer,
      drain: createExchangeDrain(tcpServer),
    });
  }
  if (udp.port !== undefined) {
    const { socket, drain } = createUdpListener(config, host, native, proved.has);
    listeners.push({
      name: 'nativeUdp',
      scheme: 'udp',
      keys: { host: 'native.host', port: 'native.udp.port' },
      at: { host: address, port: udp.port },
      socket,
      drain,
    });
  }
  return listeners;
}
