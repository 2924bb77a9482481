// Creates the traffic policy from the configuration: rules, their buckets, and what is counted of them.
import type { IncomingMessage } from 'node:http';
import type { Coordination } from '../coordination/coordination.js';
import type { Resolver } from '../resolver/resolver.js';
import { clientAddress, createProxyTrust, plainAddress } from '../server/client-address.js';
import { type RuleUse, type TrafficPolicy, createTrafficPolicy } from '../traffic/policy.js';
import { createReadFacts } from '../traffic/request-facts.js';
import type { SharedDeps } from './shared-deps.js';

interface TrafficBackends {
  coordination: Pick<Coordination, 'takeTokens'>;
  resolver: Pick<Resolver<unknown>, 'fromMemory'>;
}

export function makeTrafficPolicy(
  shared: SharedDeps,
  { coordination, resolver }: TrafficBackends,
): TrafficPolicy {
  const { config, metrics } = shared;
  const { rules } = config.traffic;
  for (const { name } of rules) metrics.addTrafficRule(name);
  const isTrusted = createProxyTrust(config.http.trustedProxies);
  const addressOf = (req: IncomingMessage): string => plainAddress(clientAddress(req, isTrusted));
  const isFresh = (handle: string): boolean => resolver.fromMemory(handle) !== undefined;
  return createTrafficPolicy({
    rules,
    addressOf,
    takeTokens: coordination.takeTokens,
    readFacts: createReadFacts({ addressOf, isFresh }),
    onUse: reportUse(shared),
  });
}

function reportUse({ metrics, logger }: SharedDeps): (use: RuleUse) => void {
  return ({ rule, facts, result }) => {
    metrics.countTrafficRule(rule.name, result);
    if (!rule.log) return;
    const { address, method, handle, userAgent } = facts;
    logger.info({ rule: rule.name, result, address, method, handle, userAgent }, 'traffic rule matched');
  };
}
