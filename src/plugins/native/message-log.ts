// Counts and logs native messages.
import type { Context } from '../../context.js';
import type { Host } from '../../host.js';
import type { MessageSpan } from '../../hooks.js';
import type { PreparedHit } from '../../observe/hits.js';
import { OP_CODE } from './codec.js';
import { type AnsweredMessage, existsByCode } from './reply.js';
import { maybe } from '../../maybe.js';

/** Runs `work` and reports its message. Tunnelled messages are reported as HTTP requests instead. */
export type ReportMessage = (
  family: 'native-tcp' | 'native-udp',
  work: () => AnsweredMessage | Promise<AnsweredMessage>,
) => AnsweredMessage | Promise<AnsweredMessage>;

const OPERATIONS: Partial<Record<number, string>> = {
  [OP_CODE.resolution]: 'RESOLUTION',
  [OP_CODE.siteInfo]: 'GET_SITE_INFO',
};

/** Creates the report for TCP and UDP messages without a prepared response. */
export function createMessageReport({ metrics, log, isLogged, hooks }: Context): ReportMessage {
  function countRead({ handle, outcome }: AnsweredMessage, family: 'native-tcp' | 'native-udp'): void {
    const exists = existsByCode(outcome);
    if (handle === undefined) return;
    if (exists !== undefined) for (const each of hooks.answered) each({ handle, exists, interface: family });
    else if (outcome.result === 'error') for (const each of hooks.failed) each(handle);
  }

  return function report(family, work) {
    const startedAt = performance.now();
    const answer = (span?: MessageSpan): AnsweredMessage | Promise<AnsweredMessage> => {
      const finish = (answered: AnsweredMessage): AnsweredMessage => {
        const ms = Math.round((performance.now() - startedAt) * 1000) / 1000;
        const { handle: { text: handle } = {}, outcome, opCode = OP_CODE.reserved } = answered;
        countRead(answered, family);
        const { result, responseCode: status, failure } = outcome;
        const method = OPERATIONS[opCode] ?? `OPCODE ${opCode}`;
        metrics.countRequest({ interface: family, handle, result, status, ms, code: failure?.code });
        const problem = failure && { code: failure.code, ...failure.diagnosis };
        const traceId = span && { traceId: span.traceId };
        if (isLogged(result)) {
          log.info(
            { interface: family, method, handle, status, result, ms, ...problem, ...traceId },
            'request',
          );
        }
        span?.describe(attributesOf(family, status, result, handle));
        span?.end(result === 'error');
        return answered;
      };
      return maybe(work(), finish);
    };
    const [spans] = hooks.spans;
    return spans === undefined ? answer() : spans.run(family, answer);
  };
}

const attributesOf = (
  family: string,
  status: number,
  result: string,
  handle: string | undefined,
): Record<string, string | number> => ({
  'handle_proxy.interface': family,
  'handle_proxy.result': result,
  'handle_proxy.response_code': status,
  ...(handle !== undefined && { 'handle_proxy.handle': handle }),
});

export function reportHit(
  { hooks: { spans }, hits }: Host,
  hit: PreparedHit,
  startedAt: number | undefined,
): void {
  hits.count(hit, undefined, startedAt);
  for (const { run } of spans)
    run(hit.family, (span) => {
      span.describe(attributesOf(hit.family, hit.status, 'hit', hit.handle));
      span.end(false);
    });
}
