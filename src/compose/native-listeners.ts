// Creates the TCP listener of the native protocol, with its count, log lines and traces.
import type { Server } from 'node:net';
import type { Answered, NativeAnswer, ReportMessage } from '../native/answer.js';
import { OP_CODE } from '../native/codec/message.js';
import { createTcpServer } from '../native/tcp.js';
import type { SharedDeps } from './shared-deps.js';

export interface NativeListeners {
  /** Undefined unless it is on. */
  tcp: Server | undefined;
}

export function makeNativeListeners(shared: SharedDeps, native: NativeAnswer): NativeListeners {
  const { config, metrics, bodies } = shared;
  const { tcp } = config.native;
  const report = makeReport(shared);
  return {
    tcp:
      tcp.port === undefined
        ? undefined
        : createTcpServer({
            ...native,
            limits: tcp,
            bodies,
            report,
            onDropped: metrics.countDroppedConnection,
          }),
  };
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
