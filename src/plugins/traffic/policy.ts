// The traffic policy: judges each request by the first matching rule, and enforces its limit.
import type { ServerResponse } from 'node:http';
import { createNetworkTest } from '../../config/addresses.js';
import type { Host } from '../../host.js';
import type { Context } from '../../context.js';
import { ServiceError } from '../../errors.js';
import { compileGlobs, type HandleRef, upperAscii } from '../../handle/handle.js';
import type { Judgement, JudgedRequest, RequestJudge } from '../../hooks.js';
import { type RequestContext, handleNamedBy } from '../../http/context.js';
import { maybe, maybeAll } from '../../maybe.js';
import type { Resolver } from '../../resolver/resolver.js';
import { clientOf, networkOf } from '../../http/client-address.js';
import { ERRORS, type InterfaceName, METRICS, RULE_RESULTS, type TrafficRule } from './plugin.js';
import { type BucketLimit, type BucketState, type TakeTokens, untilTokens } from './token-bucket.js';

interface CompiledRule extends TrafficRule {
  matches: Matches;
  window: LimitWindow | undefined;
}

interface Applied {
  rule: CompiledRule;
  /** Undefined for a rule without a limit. */
  limit?: { window: LimitWindow; state: BucketState };
  refusal: ServiceError | undefined;
}

/** Creates the judge of requests; undefined without rules. */
export function createTrafficPolicy(
  rules: readonly TrafficRule[],
  host: Host,
  takeTokens: TakeTokens,
): RequestJudge | undefined {
  if (rules.length === 0) return undefined;
  const { judge, judgementOf } = createApply(rules, takeTokens, createRuleReport(rules, host));
  return {
    judgesHits: rules.some(concernsHits),
    judgesHandles: rules.some(isOfHandles),
    judge(request) {
      const facts = readFacts(request, host);
      return maybe(judge(facts), (applied) => {
        if (applied) setLimitHeaders(request.res, applied);
        return judgementOf(facts, applied);
      });
    },
    judgeMessage(message) {
      const facts = { ...MESSAGE, ...message };
      return maybe(judge(facts), (applied) => judgementOf(facts, applied));
    },
  };
}

/** Facts common to all native messages. */
const MESSAGE = {
  userAgent: '',
  method: 'RESOLUTION',
  interface: 'native',
  credentials: undefined,
  reads: 'misses',
} as const;

function createApply(
  rules: readonly TrafficRule[],
  takeTokens: TakeTokens,
  report: ReturnType<typeof createRuleReport>,
) {
  const compiled = rules.map(compileRule);

  function apply(rule: CompiledRule, facts: TrafficFacts, tokens: number): Applied | Promise<Applied> {
    const { window } = rule;
    if (window === undefined) return appliedWithout(rule);
    const taken = takeTokens(bucketOf(rule.name, window.by, facts.address), window, tokens);
    return maybe(taken, (state) => appliedLimit(rule, { window, state }, tokens));
  }

  /** Applies the matching rules. Returns the result of the deciding rule; undefined if none decides. */
  function judge(facts: TrafficFacts): Applied | undefined | Promise<Applied | undefined> {
    const { shadows, deciding } = selectRules(compiled, facts);
    const all = [...shadows, ...(deciding ? [deciding] : [])].map((rule) => apply(rule, facts, 1));
    return maybe(maybeAll(all), (applied) => {
      for (const one of applied) report(one, facts);
      return deciding && applied.at(-1);
    });
  }

  /** Judges by handle rules only: the others have judged the request, and count its handles together. */
  function judgeHandle(facts: TrafficFacts): ServiceError | undefined | Promise<ServiceError | undefined> {
    const { deciding } = selectRules(compiled, facts);
    if (deciding === undefined || !isOfHandles(deciding)) return undefined;
    return maybe(apply(deciding, facts, 1), (applied) => {
      report(applied, facts);
      return applied.refusal;
    });
  }

  const judgementOf = (facts: TrafficFacts, applied: Applied | undefined): Judgement => ({
    refusal: applied?.refusal,
    callerClass: applied?.rule.class,
    refusalOfHandle: (handle) => judgeHandle({ ...facts, handle }),
    async charge(more) {
      if (applied === undefined) return;
      const charged = await apply(applied.rule, facts, more);
      report(charged, facts);
      if (charged.refusal) throw charged.refusal;
    },
  });

  return { judge, judgementOf };
}

const compileRule = (rule: TrafficRule): CompiledRule => ({
  ...rule,
  matches: compileMatch(rule.match),
  window: rule.limit && windowOf(rule.limit),
});

/** Returns the first matching rule that is not a shadow rule, and the matching shadow rules before it. */
function selectRules(
  rules: readonly CompiledRule[],
  facts: TrafficFacts,
): { shadows: CompiledRule[]; deciding: CompiledRule | undefined } {
  const shadows: CompiledRule[] = [];
  for (const rule of rules) {
    if (!rule.matches(facts)) continue;
    if (!rule.shadow) return { shadows, deciding: rule };
    shadows.push(rule);
  }
  return { shadows, deciding: undefined };
}

const isAnonymousRead = ({ reads, credentials }: TrafficFacts): boolean =>
  reads !== undefined && credentials === undefined;

/** Creates the function that counts and logs rule results. `limited` includes refusals without a limit. */
function createRuleReport(rules: readonly TrafficRule[], { log, hooks, metrics }: Context) {
  const count = metrics.counterOf(METRICS.rules);
  // The series of a rule begin at 0, or with their counts from before a reload.
  for (const { name } of rules) for (const result of RULE_RESULTS) count({ rule: name, result }, 0);
  return function report({ rule, refusal }: Applied, facts: TrafficFacts): void {
    const result = refusal === undefined ? 'matched' : rule.shadow ? 'shadowed' : 'limited';
    count({ rule: rule.name, result });
    if (rule.robot && result !== 'limited' && facts.handle && isAnonymousRead(facts))
      for (const each of hooks.robotRead) each(facts.handle);
    if (!rule.log) return;
    const { address, method, handle, userAgent } = facts;
    log.info(
      { rule: rule.name, result, address, method, handle: handle?.text, userAgent },
      'traffic rule matched',
    );
  };
}

type RuleLimit = NonNullable<TrafficRule['limit']>;

function bucketOf(name: string, by: RuleLimit['by'], address: string): string {
  if (by === 'rule') return name;
  return `${name} ${by === 'network' ? networkOf(address) : clientOf(address)}`;
}

/** Retry-After for refusals by rules without a limit (ms). */
const REFUSED_FOR_MS = 60_000;

const appliedWithout = (rule: CompiledRule): Applied => ({
  rule,
  refusal: rule.answer && refusalBy(rule, `rule ${rule.name}`, REFUSED_FOR_MS),
});

function appliedLimit(rule: CompiledRule, limit: NonNullable<Applied['limit']>, tokens: number): Applied {
  const { window, state } = limit;
  if (state.isTaken) return { rule, limit, refusal: undefined };
  const { quota, windowSeconds } = window;
  const detail = `rule ${rule.name}: at most ${quota} in ${windowSeconds === 1 ? 'a second' : 'a minute'}`;
  return { rule, limit, refusal: refusalBy(rule, detail, untilTokens(state, window, tokens)) };
}

const refusalBy = ({ answer }: TrafficRule, detail: string, retryAfterMs: number): ServiceError =>
  answer === 403
    ? new ServiceError(ERRORS.TRAFFIC_REFUSED, { detail })
    : new ServiceError(ERRORS.RATE_LIMITED, { detail, retryAfterMs });

function setLimitHeaders(res: ServerResponse, { rule, limit }: Applied): void {
  if (limit === undefined || res.headersSent) return;
  for (const [name, value] of limitHeaders(rule.name, limit)) res.setHeader(name, value);
}

interface LimitWindow extends BucketLimit {
  by: RuleLimit['by'];
  quota: number;
  windowSeconds: number;
}

/** Converts a limit to a window: its quota, and its bucket size, by default the quota. */
function windowOf({ perSecond, perMinute = 0, burst, by }: RuleLimit): LimitWindow {
  const windowSeconds = perSecond === undefined ? 60 : 1;
  const quota = perSecond ?? perMinute;
  return { by, quota, windowSeconds, intervalMs: (windowSeconds * 1000) / quota, burst: burst ?? quota };
}

/** @example limitHeaders('crawlers', …) // [['RateLimit-Policy', '"crawlers";q=600;w=60'], ['RateLimit', '"crawlers";r=599;t=1']] */
function limitHeaders(
  name: string,
  { window: { quota, windowSeconds }, state: { left, fullInMs } }: NonNullable<Applied['limit']>,
): [name: string, value: string][] {
  const quoted = `"${name.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
  return [
    ['RateLimit-Policy', `${quoted};q=${quota};w=${windowSeconds}`],
    ['RateLimit', `${quoted};r=${left};t=${Math.ceil(fullInMs / 1000)}`],
  ];
}

interface TrafficFacts {
  address: string;
  userAgent: string;
  method: string;
  interface: InterfaceName;
  handle: HandleRef | undefined;
  credentials: string | undefined;
  /** Whether a read hits in memory, or may need the Handle server; undefined for a write. */
  reads: 'hits' | 'misses' | undefined;
}

const isOfHandles = ({ match }: TrafficRule): boolean =>
  match.handle !== undefined || match.prefix !== undefined;

/** Whether a rule affects hits. A class alone does not: it orders waiting requests, and hits never wait. */
const concernsHits = ({ match, limit, answer, log, shadow, robot }: TrafficRule): boolean =>
  match.reads !== 'misses' && (limit !== undefined || answer !== undefined || log || shadow || robot);

function readFacts(request: JudgedRequest, { refOf, resolver }: Host): TrafficFacts {
  const { method = '', headers } = request.req;
  const named = handleNamedBy(request.place);
  const handle = named.handle === undefined ? undefined : refOf(named.handle);
  return {
    address: request.address,
    userAgent: headers['user-agent'] ?? '',
    method,
    credentials: headers.authorization,
    interface: named.interface,
    handle,
    reads: readsOf(request, named.interface, handle, resolver),
  };
}

/**
 * Classifies a read. Reads with credentials, authoritative reads and lists are misses, because they go to the Handle
 * server, and so are batches, because any of their handles may.
 */
function readsOf(
  { req: { method, headers }, place }: JudgedRequest,
  of: InterfaceName,
  handle: HandleRef | undefined,
  resolver: Resolver,
): TrafficFacts['reads'] {
  if (place.route?.interface === 'batch') return 'misses';
  if (method !== 'GET' && method !== 'HEAD') return undefined;
  if (headers.authorization !== undefined || of === 'list' || needsServer(place)) return 'misses';
  return handle !== undefined && resolver.hasFresh(handle) ? 'hits' : 'misses';
}

/** Whether a read is authoritative, or about a prefix. */
const needsServer = ({ route, parameters }: RequestContext): boolean =>
  parameters.has('auth') || parameters.has('cert') || route?.path.endsWith('{prefix}') === true;

type Matches = (facts: TrafficFacts) => boolean;

/** Compiles the conditions of a rule, cheapest first. */
function compileMatch(match: TrafficRule['match']): Matches {
  const parts = [
    match.reads && ((facts: TrafficFacts) => facts.reads === match.reads),
    match.method && matchesOne(match.method, ({ method }) => method),
    match.interface && matchesOne(match.interface, (facts) => facts.interface),
    match.credentials !== undefined &&
      ((facts: TrafficFacts) => (facts.credentials !== undefined) === match.credentials),
    match.prefix && matchPrefix(match.prefix),
    match.handle && matchText(match.handle, ({ handle }) => handle?.text),
    match.userAgent && matchText(match.userAgent, ({ userAgent }) => userAgent),
    match.network && matchNetwork(match.network),
  ].filter((part) => typeof part === 'function');
  return (facts) => parts.every((part) => part(facts));
}

function matchesOne(allowed: readonly string[], read: (facts: TrafficFacts) => string): Matches {
  const set = new Set(allowed);
  return (facts) => set.has(read(facts));
}

function matchNetwork(networks: readonly string[]): Matches {
  const isIn = createNetworkTest(networks);
  return ({ address }) => isIn(address);
}

/** Matches a prefix: `21.T1`, or `21.T1.*` for its derived prefixes. */
function matchPrefix(prefixes: readonly string[]): Matches {
  const folded = prefixes.map(upperAscii);
  const isOf = (prefix: string, pattern: string): boolean =>
    pattern.endsWith('.*') ? prefix.startsWith(pattern.slice(0, -1)) : prefix === pattern;
  return ({ handle }) => {
    if (handle?.text.includes('/') !== true) return false;
    return folded.some((pattern) => isOf(handle.prefix, pattern));
  };
}

function matchText(patterns: readonly string[], read: (facts: TrafficFacts) => string | undefined): Matches {
  const matches = compileGlobs(patterns);
  return (facts) => {
    const text = read(facts);
    return text !== undefined && matches(text);
  };
}
