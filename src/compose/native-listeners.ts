// Creates the listeners of the native protocol.
import type { Server } from 'node:net';
import type { NativeAnswer, ReportMessage } from '../native/answer.js';
import { type TcpDeps, createTcpServer } from '../native/tcp.js';
import { type UdpListener, createUdpListener } from '../native/udp.js';
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
  return { tcp: makeTcp(shared, { ...native, admit, report }), udp: makeUdp(shared, native, report) };
}

function makeTcp(
  shared: SharedDeps,
  native: NativeAnswer & Pick<TcpDeps, 'admit' | 'report'>,
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
  { config, metrics, now, peers }: SharedDeps,
  native: NativeAnswer,
  report: ReportMessage,
): UdpListener | undefined {
  const { udp, host = config.server.host } = config.native;
  if (udp.port === undefined) return undefined;
  return createUdpListener({
    ...native,
    host,
    answersPerSecond: udp.answersPerSecond,
    report,
    onLimited: metrics.countUdpLimited,
    now,
    passOn: (key, packet) => peers?.passPacket(key, packet) ?? false,
  });
}
