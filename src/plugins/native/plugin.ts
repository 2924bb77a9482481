// The native Handle protocol: UDP, TCP, and a tunnel over HTTP.
import { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Plugin } from '../../plugin.js';
import { isSameListener } from '../../config/addresses.js';
import {
  type SectionsOf,
  fixed,
  list,
  normalised,
  optionalPort,
  section,
  size,
  text,
  wholeNumber,
} from '../../config/fields.js';
import type { Config } from '../../config/schema.js';
import { fileProblem, pemProblem } from '../../config/start-problems.js';
import { defineRoutes } from '../../http/route-table.js';
import type { Target } from '../../http/target.js';
import type { MetricEntry } from '../../observe/metric-list.js';

export const METRICS = {
  udpLimited: {
    name: 'handle_proxy_native_udp_limited_total',
    type: 'counter',
    labelNames: ['reason'],
    help: 'UDP requests without a complete response, by reason (rate: above `native.udp.bytesPerSecond`, dropped or directed to TCP; size: the response would amplify; busy: too many requests pending).',
    fromStart: [{ reason: 'rate' }, { reason: 'size' }, { reason: 'busy' }],
  },
} as const satisfies Record<string, MetricEntry>;

const SITE_PROTOCOLS = ['UDP', 'TCP', 'HTTP', 'HTTPS'] as const;

interface SiteListener {
  protocol: (typeof SITE_PROTOCOLS)[number];
  port: number;
}

/** Parses an interface such as `tcp:2641`; returns undefined for an unknown protocol or invalid port. */
function readInterfaceType(given: string): SiteListener | undefined {
  const [, name = '', digits = ''] = /^([a-z]+):(\d{1,5})$/i.exec(given) ?? [];
  const protocol = SITE_PROTOCOLS.find((known) => known === name.toUpperCase());
  const port = Number(digits);
  return protocol !== undefined && port > 0 && port < 65_536 ? { protocol, port } : undefined;
}

const site = section({
  address: normalised({ allowed: 'an IP address', read: (given) => (isIP(given) === 0 ? undefined : given) })
    .optional()
    .describe('Public IP address in the site record of this instance.'),
  domain: text({ allowed: 'a host name', pattern: /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/i })
    .optional()
    .describe(
      'Host name in the site record, which clients send as `Host`, and resolve if `native.site.address` is not set.',
    ),
  interfaces: list({
    allowed: 'interfaces such as `tcp:2641`, `udp:2641`, `http:80`',
    read: readInterfaceType,
  })
    .default([])
    .describe(
      'Public interfaces in the site record, such as `udp:2641,tcp:2641,https:443`, separated by commas; by default the enabled listeners with their ports.',
    ),
  serialNumber: wholeNumber({ min: 1, max: 65_534, byDefault: 1 }).describe(
    'Serial number of the site record, sent in every native response; increase it when the record changes.',
  ),
  certificateFile: text({ allowed: 'a path', pattern: /./ })
    .optional()
    .describe(
      'PEM file with the certificate of the HTTPS interface, whose RSA key clients compare with the site record.',
    ),
  handle: text({ allowed: 'a prefix handle such as `0.NA/21.T11998`', pattern: /^0\.[^\s/]+\/\S{1,2000}$/ })
    .optional()
    .describe(
      'Handle whose HS_SITE value is the site record, if neither `native.site.address` nor `native.site.domain` is set; if it has several, the first that is not a primary site.',
    ),
});

const tcp = section({
  port: optionalPort().describe(
    'TCP port of the native protocol, such as `2641`; off without it. `0` selects a free port.',
  ),
  // Clients open a connection for each request. Above this number, a new connection replaces a connection that has sent nothing for a
  // second, else a connection that got its response a second ago, else the connection that has been sending longest.
  maxConnections: fixed(1000),
  // Maximum time without traffic: a client sends its message in one piece.
  idleTimeoutMs: fixed(15_000),
  // Maximum time to receive a message, and then for the client to read the response and close.
  requestTimeoutMs: fixed(30_000),
});

const udp = section({
  port: optionalPort().describe(
    'UDP port of the native protocol, such as `2641`; off without it. `0` selects a free port.',
  ),
  bytesPerSecond: size({ min: '0B', max: '1GiB', byDefault: '100KiB' }).describe(
    'Maximum response bytes per second to one network (IPv4 /24, IPv6 /48); beyond it, every second request is directed to TCP and the others are dropped. `0B` is unlimited.',
  ),
});

const SECTIONS = {
  native: {
    host: text({ allowed: 'a host name or an IP address', pattern: /^[^\s/@]{1,255}$/ })
      .optional()
      .describe('Address of the native listeners; by default `server.host`.'),
    tcp,
    udp,
    site,
  },
};

export type NativeConfig = Config & SectionsOf<typeof SECTIONS>;

/** Requires an RSA key: clients support only RSA and DSA, and certificates no longer use DSA. */
function siteKeyProblem(pem: string, path: string): string | undefined {
  const problem = pemProblem(pem, path);
  if (problem !== undefined) return problem;
  return new X509Certificate(pem).publicKey.asymmetricKeyType === 'rsa'
    ? undefined
    : `${path} has no RSA key`;
}

export const MESSAGE_TYPE = 'application/x-hdl-message';

const namesMessage = (value = ''): boolean => value.toLowerCase().includes(MESSAGE_TYPE);

/** Needs both headers, in any letter case (recordings "tunnel: no Accept", "tunnel: Content-Type in capitals"). */
const isTunnelled = ({ headers }: IncomingMessage): boolean =>
  namesMessage(headers.accept) && namesMessage(headers['content-type']);

/** Matches file paths of a Handle server, which accept no messages (recording "tunnel: path /static/x"). */
const FILES = /^\/static\//i;

const when = (req: IncomingMessage, { path }: Target): boolean => !FILES.test(path) && isTunnelled(req);

/** Accepts messages at every path outside the APIs. */
export const nativeRoutes = defineRoutes(
  { interface: 'native', family: 'native-tunnel', handler: 'tunnel', isRead: true },
  { 'POST /': { id: 'sendMessage', when }, 'POST /{handle}': { id: 'sendMessageAnywhere', when } },
);

export const native: Plugin<NativeConfig> = {
  name: 'native',
  sections: SECTIONS,
  rules({ native: { tcp: listener, host }, server, admin }) {
    const own = { host: host ?? server.host, port: listener.port ?? 0 };
    const isTaken = [server, admin].some((other) => isSameListener(own, other));
    return [[isTaken, 'native.tcp.port', 'give another port than those of server and admin']];
  },
  startProblems: ({ native: { site: own } }, readFile) => [
    ['native.site.certificateFile', fileProblem(own.certificateFile, readFile, siteKeyProblem)],
  ],
  metrics: METRICS,
  routes: nativeRoutes,
  clients: {
    most: ({ native: { tcp: own } }) => (own.port === undefined ? 0 : own.maxConnections),
    withMost: (settings, maxConnections) => ({
      ...settings,
      native: { ...settings.native, tcp: { ...settings.native.tcp, maxConnections } },
    }),
  },
  // Always, because the public listener accepts messages too.
  isEnabled: () => true,
  load: () => import('./native.js'),
};
