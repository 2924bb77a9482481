// Creates the traffic policy from the configuration: rules, their buckets, the limit of misses, and what is counted of them.
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { isLoopback } from '../config/addresses.js';
import type { Coordination } from '../coordination/coordination.js';
import type { Resolver } from '../resolver/resolver.js';
import {
  type IsTrustedProxy,
  clientAddress,
  createProxyTrust,
  networkOf,
  plainAddress,
} from '../server/client-address.js';
import { identityOf } from '../http/identity.js';
import type { RouteTable } from '../http/route-table.js';
import { type RunStepsOf, createRunStepsOf } from '../http/request-work.js';
import type { TcpParts } from '../native/tcp.js';
import { createMissLimit } from '../traffic/miss-limit.js';
import { type RuleUse, type TrafficPolicy, createTrafficPolicy } from '../traffic/policy.js';
import { createReadFacts } from '../traffic/request-facts.js';
import { type LimitMiss, UNKNOWN_CLIENTS } from '../upstream/caller.js';
import type { SharedDeps } from './shared-deps.js';
import type { Upstreams } from './upstreams.js';

interface TrafficBackends {
  coordination: Pick<Coordination, 'takeTokens'>;
  resolver: Pick<Resolver<unknown>, 'fromMemory'>;
}

export function makeTrafficPolicy(
  shared: SharedDeps,
  { coordination, resolver }: TrafficBackends,
  table: RouteTable,
): TrafficPolicy {
  const { config, metrics } = shared;
  const { rules, unknown } = config.traffic;
  for (const { name } of rules) metrics.addTrafficRule(name);
  const isTrusted = createProxyTrust(config.http.trustedProxies);
  const addressOf = createAddressOf(isTrusted);
  // A trusted proxy is no client, and programs of this machine are the operator's.
  const isJudged = (address: string): boolean =>
    unknown.perMinute > 0 && isIP(address) !== 0 && !isTrusted(address, 0) && !isLoopback(address);
  const isFresh = (handle: string): boolean => resolver.fromMemory(handle) !== undefined;
  return createTrafficPolicy({
    rules,
    addressOf,
    judgedNetworkOf: (address) => (isJudged(address) ? networkOf(address) : undefined),
    takeTokens: coordination.takeTokens,
    readFacts: createReadFacts({ addressOf, isFresh, table }),
    onUse: reportUse(shared),
  });
}

/** Judges a native message over TCP, whose address cannot be forged. */
export type AdmitMessageFrom = TcpParts['admit'];

export function makeAdmitMessage(
  { config }: SharedDeps,
  { admitMessage }: Pick<TrafficPolicy, 'admitMessage'>,
): AdmitMessageFrom {
  const isTrusted = createProxyTrust(config.http.trustedProxies);
  return function admit(given, handle) {
    const address = plainAddress(given);
    // Behind a load balancer the client is unknown; a closed connection has no address.
    if (isIP(address) === 0 || isTrusted(address, 0)) return UNKNOWN_CLIENTS;
    return admitMessage({
      address,
      userAgent: '',
      method: 'RESOLUTION',
      interface: 'native',
      handle,
      credentials: undefined,
      reads: 'misses',
    });
  };
}

const createAddressOf =
  (isTrusted: IsTrustedProxy) =>
  (req: IncomingMessage): string =>
    plainAddress(clientAddress(req, isTrusted));

/** Charges the work of a request to the network of its client. */
export function makeRunStepsOf({ config, slicer }: SharedDeps): RunStepsOf {
  const addressOf = createAddressOf(createProxyTrust(config.http.trustedProxies));
  return createRunStepsOf({ slicer, clientOf: (req) => networkOf(addressOf(req)) });
}

/** A writer is its login, and without one its network. */
export function makeWriterOf({
  config,
}: SharedDeps): (req: IncomingMessage) => { client: string; network: string } {
  const addressOf = createAddressOf(createProxyTrust(config.http.trustedProxies));
  return (req) => {
    const network = networkOf(addressOf(req));
    return { client: identityOf(req.headers.authorization) ?? network, network };
  };
}

/** Counts the requests that are logged by network and agent. */
export function makeClientCounter({
  config,
  metrics,
}: SharedDeps): (request: { result: string; code?: string }, req: IncomingMessage) => void {
  const addressOf = createAddressOf(createProxyTrust(config.http.trustedProxies));
  return function countClient({ result, code }, req) {
    const address = addressOf(req);
    // A client that has left may have no address any more.
    const network = isIP(address) === 0 ? undefined : networkOf(address);
    const agent = req.headers['user-agent'] ?? '';
    metrics.recent.countClient({ network, agent, result, code });
  };
}

/** The network of an address, or one that is written as its address and bits; undefined for another text. */
export function networkNamed(text: string): string | undefined {
  const [given = '', bits, ...more] = text.split('/');
  const address = plainAddress(given);
  if (isIP(address) === 0 || more.length > 0) return undefined;
  const network = networkOf(address);
  return bits === undefined || network.endsWith(`/${bits}`) ? network : undefined;
}

function reportUse({ metrics, logger }: SharedDeps): (use: RuleUse) => void {
  return ({ rule, facts, result }) => {
    metrics.countTrafficRule(rule.name, result);
    if (!rule.log) return;
    const { address, method, handle, userAgent } = facts;
    logger.info({ rule: rule.name, result, address, method, handle, userAgent }, 'traffic rule matched');
  };
}

interface MissBackends {
  coordination: Pick<Coordination, 'limitedNetworks'>;
  upstreams: Pick<Upstreams, 'servers'>;
}

export function makeMissLimit(shared: SharedDeps, { coordination, upstreams }: MissBackends): LimitMiss {
  const { limitedNetworks: networks } = coordination;
  shared.metrics.registerLimitedNetworks(() => networks.list().length);
  return createMissLimit({
    settings: () => shared.config.traffic.unknown,
    networks,
    // The queue is as long as the limit of concurrent reads.
    isUnderPressure: () => upstreams.servers.some(({ usage }) => isQueueLong(usage().read)),
    onRefused: shared.metrics.countLimitedMiss,
    now: shared.now,
  });
}

const isQueueLong = ({ waiting, limit }: { waiting: number; limit: number }): boolean => waiting >= limit;
