// Creates the listeners of the native protocol.
import type { Server } from 'node:net';
import type { NativeAnswer } from '../native/answer.js';
import { createProvedSenders } from '../native/proved-senders.js';
import { type TcpDeps, createTcpServer } from '../native/tcp.js';
import { type UdpDeps, type UdpListener, createUdpListener } from '../native/udp.js';
import { makeConnectionReports } from './client-connections.js';
import { makeReport } from './native-reports.js';
import type { SharedDeps } from './shared-deps.js';

export interface NativeListeners {
  /** Undefined unless it is on. */
  tcp: Server | undefined;
  udp: UdpListener | undefined;
}

export function makeNativeListeners(
  shared: SharedDeps,
  native: NativeAnswer,
  admit: TcpDeps['admit'],
): NativeListeners {
  const report = makeReport(shared);
  const proved = createProvedSenders(shared.now);
  return {
    tcp: makeTcp(shared, { ...native, admit, report, onMessage: proved.add }),
    udp: makeUdp(shared, { ...native, report, isProved: proved.has }),
  };
}

function makeTcp(
  shared: SharedDeps,
  native: NativeAnswer & Pick<TcpDeps, 'admit' | 'report' | 'onMessage'>,
): Server | undefined {
  const { config, bodies } = shared;
  const { tcp } = config.native;
  if (tcp.port === undefined) return undefined;
  return createTcpServer({
    ...native,
    limits: { ...tcp, ...makeConnectionReports(shared, 'native-tcp') },
    bodies,
  });
}

function makeUdp(
  { config, metrics, now }: SharedDeps,
  native: NativeAnswer & Pick<UdpDeps, 'report' | 'isProved'>,
): UdpListener | undefined {
  const { udp, host = config.server.host } = config.native;
  if (udp.port === undefined) return undefined;
  return createUdpListener({
    ...native,
    host,
    reusePort: config.server.reusePort,
    bytesPerSecond: udp.bytesPerSecond,
    onLimited: metrics.countUdpLimited,
    now,
  });
}
