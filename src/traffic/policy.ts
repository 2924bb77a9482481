// The traffic policy: judges each request by the first matching rule, enforces its limit, and refuses
// requests.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { isLoopback } from '../config/addresses.js';
import type { Config } from '../config/schema.js';
import type { TrafficRule } from '../config/schema-traffic.js';
import type { Context } from '../context.js';
import { type BucketState, type TakeTokens, untilTokens, type BucketLimit } from './token-bucket.js';
import { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import { contextOf, hasContext } from '../http/context.js';
import type { Listener, RefusalOfHandle } from '../http/guard.js';
import { type ChecksLogin, identityOf } from '../http/identity.js';
import type { RouteTable } from '../http/route-table.js';
import type { Resolver } from '../resolver/resolver.js';
import {
  type IsTrustedProxy,
  clientOf,
  createAddressOf,
  networkOf,
  plainAddress,
} from '../server/client-address.js';
import { type Caller, UNKNOWN_CLIENTS, proxiesIn } from '../upstream/caller.js';
import { ConfirmedLogins } from './confirmed-logins.js';
import {
  type Matches,
  compileMatch,
  createReadFacts,
  type TrafficFacts,
  concernsHits,
  isOfHandles,
} from './rules.js';
import { maybe } from '../maybe.js';

interface TrafficSettings {
  rules: readonly TrafficRule[];
  enumeration: Pick<Config['traffic']['enumeration'], 'perMinute'>;
}

interface TrafficParts {
  takeTokens: TakeTokens;
  resolver: Pick<Resolver<unknown>, 'fromMemory' | 'refOf'>;
  table: RouteTable;
  checksLogin: ChecksLogin;
  isTrustedProxy: IsTrustedProxy;
}

export interface TrafficPolicy {
  /** Judges requests before they are handled. Returns the listener unchanged if no rule affects hits. */
  wrap: (listener: Listener) => Listener;
  /** Returns the refusal of a judged request; undefined if it is admitted. */
  refusalOf: (req: IncomingMessage) => ServiceError | undefined;
  /** Judges a request once, and returns its caller. @throws ServiceError RATE_LIMITED, TRAFFIC_REFUSED */
  admit: (req: IncomingMessage, res: ServerResponse) => Caller | Promise<Caller>;
  /**
   * Judges a native message that misses in memory, and returns its caller. Used only for TCP, because UDP
   * addresses can be forged.
   *
   * @throws ServiceError RATE_LIMITED, TRAFFIC_REFUSED
   */
  admitMessage: (address: string, handle: HandleRef) => Caller | Promise<Caller>;
  /**
   * Judges, by handle and prefix rules, a single handle of a request that names it in its body or names many
   * handles. Undefined without such rules.
   */
  refusalOfHandle: RefusalOfHandle | undefined;
  /**
   * Charges a request with many handles for `more` additional requests. @throws ServiceError when it exceeds
   * the limit
   */
  charge: (req: IncomingMessage, more: number) => Promise<void>;
}

interface CompiledRule extends TrafficRule {
  matches: Matches;
  window: LimitWindow | undefined;
}

interface Applied {
  rule: CompiledRule;
  state: BucketState | undefined;
  refusal: ServiceError | undefined;
}

interface Judgement {
  facts: TrafficFacts;
  caller: Caller;
  /** Result of the deciding rule; undefined if no rule decides. */
  applied: Applied | undefined;
}

export function createTrafficPolicy(
  { rules, enumeration }: TrafficSettings,
  context: Context,
  { takeTokens, resolver, table, checksLogin, isTrustedProxy }: TrafficParts,
): TrafficPolicy {
  for (const { name } of rules) context.metrics.addTrafficRule(name);
  const addressOf = createAddressOf(isTrustedProxy);
  const readFacts = createReadFacts({ addressOf, resolver });
  const callerOf = createCallerOf(enumeration, isTrustedProxy);
  const report = createReport(context);
  const logins = new ConfirmedLogins(checksLogin);
  const { apply, judge, judgeHandle } = createJudge(rules, { takeTokens, callerOf, report, logins });
  const { judged, judgeOnce } = createJudgeOnce(rules, { readFacts, table, logins, judge });

  return {
    refusalOfHandle: rules.some(isOfHandles)
      ? (req, handle) => {
          const { facts } = judged.get(req) ?? {};
          return facts && judgeHandle({ ...facts, handle });
        }
      : undefined,
    wrap: (listener) => {
      if (!rules.some(concernsHits)) return listener;
      return (req, res) => {
        return maybe(judgeOnce(req, res), () => listener(req, res));
      };
    },
    refusalOf: (req) => judged.get(req)?.applied?.refusal,
    admit(req, res) {
      // The target of a miss is not parsed a second time if there are no rules.
      if (rules.length === 0) return callerOf(req, addressOf(req));
      return maybe(judgeOnce(req, res), admitted);
    },
    admitMessage(given, handle) {
      const address = plainAddress(given);
      // Behind a load balancer the client is unknown, and a closed connection has no address.
      if (isIP(address) === 0 || isTrustedProxy(address)) return UNKNOWN_CLIENTS;
      return maybe(judge({ ...MESSAGE, address, handle }, {}), admitted);
    },
    async charge(req, more) {
      const { applied: { rule } = {}, facts } = judged.get(req) ?? {};
      if (rule === undefined || facts === undefined) return;
      const applied = await apply(rule, facts, more);
      report(applied, facts);
      if (applied.refusal) throw applied.refusal;
    },
  };
}

interface JudgeOnceParts {
  readFacts: ReturnType<typeof createReadFacts>;
  table: RouteTable;
  logins: ConfirmedLogins;
  judge: ReturnType<typeof createJudge>['judge'];
}

/** Creates the function that judges each request once and stores the judgement. */
function createJudgeOnce(rules: readonly TrafficRule[], { readFacts, table, logins, judge }: JudgeOnceParts) {
  const isByIdentity = rules.some(({ limit }) => limit?.by === 'identity');
  const judged = new WeakMap<IncomingMessage, Judgement>();

  function judgeOnce(req: IncomingMessage, res: ServerResponse): Judgement | Promise<Judgement> {
    const known = judged.get(req);
    if (known !== undefined) return known;
    const facts = readFacts(req, hasContext(res) ? contextOf(res) : table.locate(req.url ?? ''));
    if (isByIdentity && facts.credentials !== undefined) logins.watch(res, facts);
    const judging = judge(facts, req.headers);
    const keep = (judgement: Judgement): Judgement => {
      judged.set(req, judgement);
      if (judgement.applied) setLimitHeaders(res, judgement.applied);
      return judgement;
    };
    return maybe(judging, keep);
  }

  return { judged, judgeOnce };
}

/** Facts common to all native messages. */
const MESSAGE = {
  userAgent: '',
  method: 'RESOLUTION',
  interface: 'native',
  credentials: undefined,
  reads: 'misses',
} as const;

interface JudgeParts {
  takeTokens: TakeTokens;
  callerOf: ReturnType<typeof createCallerOf>;
  report: ReturnType<typeof createReport>;
  logins: ConfirmedLogins;
}

/** Creates the functions that apply the rules to the facts of a request. */
function createJudge(rules: readonly TrafficRule[], { takeTokens, callerOf, report, logins }: JudgeParts) {
  const compiled = rules.map(compileRule);

  /**
   * Takes tokens from all buckets of a request. An unconfirmed login also uses a bucket shared by its
   * network.
   */
  function take(
    window: LimitWindow,
    buckets: readonly string[],
    tokens: number,
  ): BucketState | Promise<BucketState> {
    const [bucket = '', ...others] = buckets;
    const taken = takeTokens(bucket, window, tokens);
    if (others.length === 0) return taken;
    const takeOthers = (state: BucketState): BucketState | Promise<BucketState> =>
      state.isTaken ? take(window, others, tokens) : state;
    return maybe(taken, takeOthers);
  }

  function apply(rule: CompiledRule, facts: TrafficFacts, tokens: number): Applied | Promise<Applied> {
    const { window, limit } = rule;
    if (window === undefined || limit === undefined) return appliedWithout(rule);
    const taken = take(window, bucketsOf(rule.name, { by: limit.by, facts, logins }), tokens);
    return maybe(taken, (state) => appliedLimit(rule, state, tokens));
  }

  function judge(facts: TrafficFacts, headers: IncomingHttpHeaders): Judgement | Promise<Judgement> {
    const { shadows, deciding } = selectRules(compiled, facts);
    const all = [...shadows, ...(deciding ? [deciding] : [])].map((rule) => apply(rule, facts, 1));
    const settle = (applied: readonly Applied[]): Judgement => {
      for (const one of applied) report(one, facts);
      const last = deciding && applied.at(-1);
      return { facts, caller: callerOf({ headers }, facts.address, deciding), applied: last };
    };
    return isSynchronous(all) ? settle(all) : Promise.all(all.map(async (one) => one)).then(settle);
  }

  /**
   * Judges by handle rules only. All other rules have judged the request already, and count its handles
   * together.
   */
  function judgeHandle(facts: TrafficFacts): ServiceError | undefined | Promise<ServiceError | undefined> {
    const { deciding } = selectRules(compiled, facts);
    if (deciding === undefined || !isOfHandles(deciding)) return undefined;
    const settle = (applied: Applied): ServiceError | undefined => {
      report(applied, facts);
      return applied.refusal;
    };
    return maybe(apply(deciding, facts, 1), settle);
  }

  return { apply, judge, judgeHandle };
}

const isSynchronous = (all: readonly (Applied | Promise<Applied>)[]): all is readonly Applied[] =>
  !all.some((one) => one instanceof Promise);

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

function admitted({ caller, applied }: Judgement): Caller {
  if (applied?.refusal) throw applied.refusal;
  return caller;
}

const isAnonymousRead = ({ reads, credentials }: TrafficFacts): boolean =>
  reads !== undefined && credentials === undefined;

/** Creates the function that counts and logs rule results. `limited` includes refusals without a limit. */
function createReport({ metrics, log, hooks }: Context) {
  return function report({ rule, refusal }: Applied, facts: TrafficFacts): void {
    const result = refusal === undefined ? 'matched' : rule.shadow ? 'shadowed' : 'limited';
    metrics.countTrafficRule(rule.name, result);
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

function createCallerOf({ perMinute }: TrafficSettings['enumeration'], isTrustedProxy: IsTrustedProxy) {
  // Excludes trusted proxies, which are not clients, and local programs, which belong to the operator.
  const isJudged = (address: string): boolean =>
    perMinute > 0 && isIP(address) !== 0 && !isTrustedProxy(address) && !isLoopback(address);

  return function callerOf(
    { headers }: Pick<IncomingMessage, 'headers'>,
    address: string,
    rule?: TrafficRule,
  ): Caller {
    const given = rule?.class ?? (isBackground(headers['priority']) ? 'background' : 'normal');
    const network = given !== 'preferred' && isJudged(address) ? networkOf(address) : undefined;
    const via = proxiesIn(headers.via);
    return { class: given, client: clientOf(address), network, ...(via !== undefined && { via }) };
  };
}

/** Urgency 7 is for background tasks (RFC 9218 §4.1). A client may only lower its own class. */
const isBackground = (priority: string | string[] | undefined): boolean =>
  priority !== undefined && /^\s*u=7(?:\s*,|\s*$)/.test(priority.toString());

interface Counted {
  by: NonNullable<TrafficRule['limit']>['by'];
  facts: TrafficFacts;
  logins: ConfirmedLogins;
}

function bucketsOf(name: string, { by, facts, logins }: Counted): string[] {
  const { address, credentials } = facts;
  switch (by) {
    case 'rule':
      return [name];
    case 'network':
      return [`${name} ${networkOf(address)}`];
    case 'identity': {
      // The identity excludes the password, so that guesses of a password count together.
      const identity = identityOf(credentials);
      if (identity === undefined) return [`${name} ${clientOf(address)}`];
      const unconfirmed = logins.has(facts) ? [] : [`${name} unconfirmed ${networkOf(address)}`];
      return [...unconfirmed, `${name} ${identity}`];
    }
    case 'address':
      return [`${name} ${clientOf(address)}`];
  }
}

/** Retry-After for refusals by rules without a limit (ms). */
const REFUSED_FOR_MS = 60_000;

const appliedWithout = (rule: CompiledRule): Applied => ({
  rule,
  state: undefined,
  refusal: rule.answer && refusalBy(rule, `rule ${rule.name}`, REFUSED_FOR_MS),
});

function appliedLimit(rule: CompiledRule, state: BucketState, tokens: number): Applied {
  const { window } = rule;
  if (state.isTaken || window === undefined) return { rule, state, refusal: undefined };
  const { quota, windowSeconds } = window;
  const detail = `rule ${rule.name}: at most ${quota} in ${windowSeconds === 1 ? 'a second' : 'a minute'}`;
  return { rule, state, refusal: refusalBy(rule, detail, untilTokens(state, window, tokens)) };
}

const refusalBy = ({ answer }: TrafficRule, detail: string, retryAfterMs: number): ServiceError =>
  answer === 403
    ? new ServiceError('TRAFFIC_REFUSED', { detail })
    : new ServiceError('RATE_LIMITED', { detail, retryAfterMs });

function setLimitHeaders(res: ServerResponse, { rule, state }: Applied): void {
  if (state === undefined || rule.window === undefined || res.headersSent) return;
  for (const [name, value] of limitHeaders(rule.name, rule.window, state)) res.setHeader(name, value);
}

interface LimitWindow extends BucketLimit {
  quota: number;
  windowSeconds: number;
}

/**
 * Converts the limit of a rule to a window: its quota, and its bucket size, which equals the quota unless
 * `burst` is set.
 */
function windowOf({ perSecond, perMinute = 0, burst }: NonNullable<TrafficRule['limit']>): LimitWindow {
  const windowSeconds = perSecond === undefined ? 60 : 1;
  const quota = perSecond ?? perMinute;
  return { quota, windowSeconds, intervalMs: (windowSeconds * 1000) / quota, burst: burst ?? quota };
}

/** @example limitHeaders('crawlers', …) // [['RateLimit-Policy', '"crawlers";q=600;w=60'], ['RateLimit', '"crawlers";r=599;t=1']] */
function limitHeaders(
  name: string,
  { quota, windowSeconds }: LimitWindow,
  { left, fullInMs }: BucketState,
): [name: string, value: string][] {
  const quoted = `"${name.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
  return [
    ['RateLimit-Policy', `${quoted};q=${quota};w=${windowSeconds}`],
    ['RateLimit', `${quoted};r=${left};t=${Math.ceil(fullInMs / 1000)}`],
  ];
}
