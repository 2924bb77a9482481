// Counts and logs native messages.
import type { Context } from '../context.js';
import type { Hooks, MessageSpan } from '../hooks.js';
import type { Hits, PreparedHit } from '../observe/hits.js';
import { OP_CODE } from './codec.js';
import { type AnsweredMessage, existsBy } from './reply.js';
import { maybe } from '../maybe.js';

/** The POST that carries a tunnelled message. */
export interface TunnelRequest {
  /** Raw request target. */
  target: string;
  /** Undefined unless received with the request. */
  requestId: string | undefined;
}

/** Runs `work` and reports its message. Tunnelled messages are reported as HTTP requests instead. */
export type ReportMessage = (
  family: 'native-tcp' | 'native-udp',
  work: () => AnsweredMessage | Promise<AnsweredMessage>,
) => AnsweredMessage | Promise<AnsweredMessage>;

export type ReportHit = (
  hit: PreparedHit,
  post: TunnelRequest | undefined,
  startedAt: number | undefined,
) => void;

const OPERATIONS: Partial<Record<number, string>> = {
  [OP_CODE.resolution]: 'RESOLUTION',
  [OP_CODE.siteInfo]: 'GET_SITE_INFO',
};

/** Creates the report for TCP and UDP messages without a prepared response. */
export function createReport({ metrics, log, isLogged, hooks }: Context): ReportMessage {
  function countRead({ handle, outcome }: AnsweredMessage, family: 'native-tcp' | 'native-udp'): void {
    const exists = existsBy(outcome);
    if (handle === undefined || exists === undefined) return;
    for (const each of hooks.answered) each({ handle, exists, interface: family });
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
        span?.describe(attributesOf({ family, handle, status, result }));
        span?.end(result === 'error');
        return answered;
      };
      return maybe(work(), finish);
    };
    const [spans] = hooks.spans;
    return spans === undefined ? answer() : spans.run(family, answer);
  };
}

interface DescribedMessage extends Pick<PreparedHit, 'family' | 'status'> {
  handle: string | undefined;
  result: string;
}

const attributesOf = ({
  family,
  handle,
  status,
  result,
}: DescribedMessage): Record<string, string | number> => ({
  'handle_proxy.interface': family,
  'handle_proxy.result': result,
  'handle_proxy.response_code': status,
  ...(handle !== undefined && { 'handle_proxy.handle': handle }),
});

const pathOf = ({ target }: TunnelRequest): string => target.split('?', 1)[0] ?? '';

/** Creates the report for messages with a prepared response. */
export function createReportHit({ spans }: Pick<Hooks, 'spans'>, { count }: Pick<Hits, 'count'>): ReportHit {
  const postOf = createPostOf();
  return function reportHit(hit, post, startedAt) {
    if (post === undefined) count(hit, undefined, startedAt);
    else count(postOf(hit, post.target), post.requestId, startedAt);
    for (const { current, run } of spans) {
      const attributes = attributesOf({ ...hit, result: 'hit' });
      if (post !== undefined) current()?.describe({ 'url.path': pathOf(post), ...attributes });
      else {
        run(hit.family, (span) => {
          span.describe(attributes);
          span.end(false);
        });
      }
    }
  };
}

/** Maximum length of a cached target, because no budget counts its bytes; clients post to short targets. */
const MAX_KEPT_TARGET_CHARS = 100;

/**
 * Creates a function that describes a tunnel hit as an HTTP request. Returns the same object for the same
 * hit and target, because log lines are cached by object.
 */
function createPostOf(): (hit: PreparedHit, target: string) => PreparedHit {
  const posts = new WeakMap<PreparedHit, PreparedHit>();
  return function postOf(hit, target) {
    const known = posts.get(hit);
    if (known?.target === target) return known;
    const { family, handle, exists } = hit;
    const post = { family, handle, method: 'POST', target, status: 200, exists, repeats: 0 };
    if (target.length <= MAX_KEPT_TARGET_CHARS) posts.set(hit, post);
    return post;
  };
}
