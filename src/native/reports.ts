// Count, log line and trace of native messages.
import type { Context } from '../context.js';
import type { Hits } from '../observe/hits.js';
import { OP_CODE } from './codec.js';
import type { AnsweredMessage, Transport } from './reply.js';

/** A hit, for log and metrics. One object serves all hits of a prepared message: copy it to keep it. */
export interface ReportedHit {
  family: `native-${Transport}`;
  /** The operation. */
  method: string;
  handle: string;
  /** The response code. */
  status: number;
}

/** The POST of a message in the tunnel. */
export interface TunnelRequest {
  /** Raw request target. */
  target: string;
  /** Only one that came with the request. */
  requestId: string | undefined;
}

/** Counts, logs and traces a message of an interface that is not HTTP. */
export type ReportMessage = (
  family: 'native-tcp' | 'native-udp',
  work: () => AnsweredMessage | Promise<AnsweredMessage>,
) => AnsweredMessage | Promise<AnsweredMessage>;

export type ReportHit = (
  hit: ReportedHit,
  post: TunnelRequest | undefined,
  startedAt: number | undefined,
) => void;

const OPERATIONS: Partial<Record<number, string>> = {
  [OP_CODE.resolution]: 'RESOLUTION',
  [OP_CODE.siteInfo]: 'GET_SITE_INFO',
};

/** Of messages on TCP and UDP that are answered anew; those in the tunnel are reported as HTTP requests. */
export function createReport({ metrics, log, isLogged, tracer }: Context): ReportMessage {
  return function report(family, work) {
    const startedAt = performance.now();
    const answer = (trace?: TraceOfMessage): AnsweredMessage | Promise<AnsweredMessage> => {
      const finish = (answered: AnsweredMessage): AnsweredMessage => {
        const ms = Math.round((performance.now() - startedAt) * 1000) / 1000;
        const { handle: { text: handle } = {}, outcome, opCode = OP_CODE.reserved } = answered;
        const { result, responseCode: status, failure } = outcome;
        const method = OPERATIONS[opCode] ?? `OPCODE ${opCode}`;
        metrics.countRequest({ family, handle, result, status, ms, code: failure?.code });
        const problem = failure && { code: failure.code, ...failure.diagnosis };
        const traceId = trace && { traceId: trace.traceId };
        if (isLogged(result)) {
          log.info({ family, method, handle, status, result, ms, ...problem, ...traceId }, 'request');
        }
        trace?.describe(attributesOf({ family, handle, status, result }));
        trace?.end(result === 'error');
        return answered;
      };
      const answered = work();
      return answered instanceof Promise ? answered.then(finish) : finish(answered);
    };
    return tracer === undefined ? answer() : tracer.run(family, answer);
  };
}

type TraceOfMessage = Parameters<Parameters<NonNullable<Context['tracer']>['run']>[1]>[0];

interface DescribedMessage extends Omit<ReportedHit, 'method' | 'handle'> {
  handle: string | undefined;
  result: string;
}

const attributesOf = ({
  family,
  handle,
  status,
  result,
}: DescribedMessage): Record<string, string | number> => ({
  'handle_proxy.family': family,
  'handle_proxy.result': result,
  'handle_proxy.response_code': status,
  ...(handle !== undefined && { 'handle_proxy.handle': handle }),
});

const pathOf = ({ target }: TunnelRequest): string => target.split('?', 1)[0] ?? '';

/** Of messages that are answered as prepared. */
export function createReportHit(
  { tracer }: Pick<Context, 'tracer'>,
  { count }: Pick<Hits, 'count'>,
): ReportHit {
  const postOf = createPostOf();
  return function reportHit(hit, post, startedAt) {
    if (post === undefined) count(hit, undefined, startedAt);
    else count(postOf(hit, post.target), post.requestId, startedAt);
    if (tracer === undefined) return;
    const attributes = attributesOf({ ...hit, result: 'hit' });
    if (post !== undefined) tracer.current()?.describe({ 'url.path': pathOf(post), ...attributes });
    else {
      tracer.run(hit.family, (trace) => {
        trace.describe(attributes);
        trace.end(false);
      });
    }
  };
}

/** A longer target is not kept: nothing counts its bytes, nor those of its log line, and clients post to short ones. */
const MAX_KEPT_TARGET_CHARS = 100;

type PostedMessage = Omit<ReportedHit, 'method'> & { method: 'POST'; target: string };

/** Describes a hit in the tunnel as its HTTP request. One target gives one object, by which the log line is cached. */
function createPostOf(): (hit: ReportedHit, target: string) => PostedMessage {
  const posts = new WeakMap<ReportedHit, PostedMessage>();
  return function postOf(hit, target) {
    const known = posts.get(hit);
    if (known?.target === target) return known;
    const { family, handle } = hit;
    const post = { family, handle, method: 'POST', target, status: 200 } as const;
    if (target.length <= MAX_KEPT_TARGET_CHARS) posts.set(hit, post);
    return post;
  };
}
