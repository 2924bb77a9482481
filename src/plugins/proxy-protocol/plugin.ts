// PROXY protocol: a balancer in front that forwards bytes sends the address of its client ahead of them.
import type { Plugin } from '../../plugin.js';
import { readNetwork } from '../../config/addresses.js';
import { type SectionsOf, fixed, list, section } from '../../config/fields.js';
import type { Config } from '../../config/schema.js';
import type { MetricEntry } from '../../observe/metric-list.js';

const REASONS = ['untrusted', 'invalid', 'timeout', 'limit'] as const;

export type RejectionReason = (typeof REASONS)[number];

export const METRICS = {
  rejections: {
    name: 'handle_proxy_proxy_protocol_rejections_total',
    type: 'counter',
    labelNames: ['reason'],
    help: 'Connections closed without a request: not from `proxyProtocol.from` (`untrusted`), without a valid header (`invalid`) or its end within 5 seconds (`timeout`), or beyond 1,000 waiting for their header (`limit`).',
    fromStart: REASONS.map((reason) => ({ reason })),
  },
} as const satisfies Record<string, MetricEntry>;

const SECTIONS = {
  proxyProtocol: section({
    from: list({
      allowed: 'IP addresses, networks such as `10.0.0.0/8` (not `/0`), or loopback, linklocal, uniquelocal',
      read: readNetwork,
    })
      .default([])
      .describe(
        'TCP load balancers that send the PROXY protocol, version 1 or 2: addresses, networks such as `10.0.0.0/8`, or `loopback`, separated by commas. If set, the public listener closes every connection that is not from one of them or does not begin with its header; the address in the header is that of the client.',
      ),
    // Longer than a TCP retransmission, as the specification asks; balancers send the header immediately.
    headerTimeoutMs: fixed(5000),
    // In addition to `server.maxConnections`, which counts a connection once its header has arrived.
    maxWaiting: fixed(1000),
  }),
};

export type ProxyProtocolConfig = Config & SectionsOf<typeof SECTIONS>;

const isEnabled = ({ proxyProtocol: { from } }: ProxyProtocolConfig): boolean => from.length > 0;

export const proxyProtocol: Plugin<ProxyProtocolConfig> = {
  name: 'proxy-protocol',
  sections: SECTIONS,
  metrics: METRICS,
  clients: {
    most: (settings) => (isEnabled(settings) ? settings.proxyProtocol.maxWaiting : 0),
    withMost: (settings, maxWaiting) => ({
      ...settings,
      proxyProtocol: { ...settings.proxyProtocol, maxWaiting },
    }),
  },
  isEnabled,
  load: () => import('./proxy-protocol.js'),
};
