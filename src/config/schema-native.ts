// Keys of the native Handle protocol.
import { isIP } from 'node:net';
import {
  duration,
  flag,
  list,
  normalised,
  optionalPort,
  section,
  size,
  text,
  wholeNumber,
} from './fields.js';

const SITE_PROTOCOLS = ['UDP', 'TCP', 'HTTP', 'HTTPS'] as const;

export interface SiteInterface {
  protocol: (typeof SITE_PROTOCOLS)[number];
  port: number;
}

/** Such as `tcp:2641`. */
function readInterface(given: string): SiteInterface | undefined {
  const [, name = '', digits = ''] = /^([a-z]+):(\d{1,5})$/i.exec(given) ?? [];
  const protocol = SITE_PROTOCOLS.find((known) => known === name.toUpperCase());
  const port = Number(digits);
  return protocol !== undefined && port > 0 && port < 65_536 ? { protocol, port } : undefined;
}

const site = section({
  address: normalised({
    allowed: 'an IP address',
    read: (given) => (isIP(given) === 0 ? undefined : given),
  })
    .optional()
    .describe('Public IP address in the site record of this instance.'),
  domain: text({ allowed: 'a host name', pattern: /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/i })
    .optional()
    .describe(
      'Host name in the site record, for `Host` of HTTP requests; without `native.site.address` clients look it up.',
    ),
  interfaces: list({ allowed: 'interfaces such as `tcp:2641`, `udp:2641`, `http:80`', read: readInterface })
    .default([])
    .describe(
      'Public interfaces in the site record, such as `udp:2641,tcp:2641,https:443`, separated by commas; by default those that are on, at their own ports.',
    ),
  serialNumber: wholeNumber({ min: 1, max: 65_534, byDefault: 1 }).describe(
    'Serial number of the site record, in every native answer; raise it when the record changes.',
  ),
  description: text({ allowed: 'a line of text', pattern: /^[^\0-\x1f]{1,500}$/ })
    .prefault('Caching mirror')
    .describe('Description in the site record.'),
  certificateFile: text({ allowed: 'a path', pattern: /./ })
    .optional()
    .describe(
      'PEM file with the certificate of the HTTPS interface, whose RSA key clients compare with the site record.',
    ),
  handle: text({ allowed: 'a prefix handle such as `0.NA/21.T11998`', pattern: /^0\.[^\s/]+\/\S{1,2000}$/ })
    .optional()
    .describe(
      'Handle whose HS_SITE value is the site record, where neither `native.site.address` nor `native.site.domain` is set; of several the first that is not a primary site.',
    ),
});

const tcp = section({
  port: optionalPort().describe(
    'TCP port of the native protocol, such as `2641`; off without it. `0` selects a free port.',
  ),
  maxConnections: wholeNumber({ min: 1, max: 1_000_000, byDefault: 1000 }).describe(
    'Maximum open native connections. A further one replaces one that has sent nothing for a second, then one that was answered a second ago, then the one that has been sending its message for longest, at least for a second; where there is none, it is closed at once.',
  ),
  maxConnectionsPerNetwork: wholeNumber({ min: 0, max: 1_000_000, byDefault: 0 }).describe(
    'Maximum open native connections of one network, as `server.maxConnectionsPerNetwork`. `0` is unlimited.',
  ),
  idleTimeout: duration({ min: '100ms', max: '10m', byDefault: '15s' }).describe(
    'Timeout for a native connection without traffic.',
  ),
  requestTimeout: duration({ min: '100ms', max: '1h', byDefault: '30s' }).describe(
    'Timeout for receiving a native message, and again for the client to read the answer and close.',
  ),
});

const udp = section({
  port: optionalPort().describe(
    'UDP port of the native protocol, such as `2641`; off without it. `0` selects a free port.',
  ),
  bytesPerSecond: size({ min: '0B', max: '1GiB', byDefault: '100KiB' }).describe(
    'Maximum bytes of answers per second to one network (IPv4 /24, IPv6 /48); of further requests every second one is sent to TCP, the others are dropped. `0B` is unlimited.',
  ),
});

export const native = section({
  tunnel: flag(true).describe(
    'Whether the public listener answers native messages, sent with POST as `application/x-hdl-message`.',
  ),
  host: text({ allowed: 'a host name or an IP address', pattern: /^[^\s/@]{1,255}$/ })
    .optional()
    .describe('Address of the native listeners; by default that of the public one, `server.host`.'),
  tcp,
  udp,
  site,
});
