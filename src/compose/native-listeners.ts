// Creates the listeners of the native protocol, with their count, log lines and traces.
import type { Server } from 'node:net';
import type { Answered, NativeAnswer, ReportMessage } from '../native/answer.js';
import { OP_CODE } from '../native/codec/message.js';
import { createTcpServer } from '../native/tcp.js';
import { type UdpListener, createUdpListener } from '../native/udp.js';
import { makeConnectionReports } from './client-connections.js';
import type { SharedDeps } from './shared-deps.js';

export interface NativeListeners {
  /** Undefined unless it is on. */
  tcp: Server | undefined;
  udp: UdpListener | undefined;
}

export function makeNativeListeners(shared: SharedDeps, native: NativeAnswer): NativeListeners {
  const report = makeReport(shared);
  return { tcp: makeTcp(shared, native, report), udp: makeUdp(shared, native, report) };
}

function makeTcp(shared: SharedDeps, native: NativeAnswer, report: ReportMessage): Server | undefined {
  const { config, bodies } = shared;
  const { tcp } = config.native;
  if (tcp.port === undefined) return undefined;
  return createTcpServer({
    ...native,
    limits: { ...tcp, ...makeConnectionReports(shared, 'native-tcp') },
    bodies,
    report,
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

const OPERATIONS: Partial<Record<number, string>> = {
  [OP_CODE.resolution]: 'RESOLUTION',
  [OP_CODE.siteInfo]: 'GET_SITE_INFO',
};

function makeReport({ metrics, activity, logger, tracer }: SharedDeps): ReportMessage {
  return function report(family, work) {
    const startedAt = performance.now();
    const answer = (trace?: TraceOfMessage): Answered | Promise<Answered> => {
      const finish = (answered: Answered): Answered => {
        const ms = Math.round((performance.now() - startedAt) * 1000) / 1000;
        const { handle, outcome, opCode = OP_CODE.reserved } = answered;
        const { result, responseCode: status, failure } = outcome;
        const method = OPERATIONS[opCode] ?? `OPCODE ${opCode}`;
        metrics.countRequest({ family, result, status, ms });
        activity.countRequest({ family, handle, result, ms });
        if (failure) activity.addError(`${failure.status} for ${handle ?? family}`);
        const problem = failure && { code: failure.code, ...failure.diagnosis };
        const traceId = trace && { traceId: trace.traceId };
        logger.info({ family, method, handle, status, result, ms, ...problem, ...traceId }, 'request');
        trace?.describe({ ...attributesOf(answered), 'handle_proxy.family': family });
        trace?.end(result === 'error');
        return answered;
      };
      const answered = work();
      return answered instanceof Promise ? answered.then(finish) : finish(answered);
    };
    return tracer === undefined ? answer() : tracer.run(family, answer);
  };
}

type TraceOfMessage = Parameters<Parameters<NonNullable<SharedDeps['tracer']>['run']>[1]>[0];

const attributesOf = ({ handle, outcome }: Answered): Record<string, string | number> => ({
  'handle_proxy.result': outcome.result,
  'handle_proxy.response_code': outcome.responseCode,
  ...(handle !== undefined && { 'handle_proxy.handle': handle }),
});
