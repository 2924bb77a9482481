// The site record of this instance: a query-only site that is no primary (RFC 3651 §3.2.2).
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Config } from '../config/schema.js';
import type { SiteJson } from '../handle/site-data.js';

/** The sections that decide it. */
export type SiteConfig = Pick<Config, 'native' | 'server'>;

/** Clients that find it ask their `domain` for the address. */
const NO_ADDRESS = '0.0.0.0';

/** @throws when the certificate cannot be read */
export function siteRecord(config: SiteConfig): SiteJson {
  const { address, domain, serialNumber, description, certificateFile } = config.native.site;
  return {
    version: 1,
    protocolVersion: '2.11',
    serialNumber,
    primarySite: false,
    multiPrimary: false,
    attributes: [
      { name: 'desc', value: description },
      ...(domain === undefined ? [] : [{ name: 'domain', value: domain }]),
    ],
    servers: [
      {
        serverId: 1,
        address: address ?? NO_ADDRESS,
        ...(certificateFile !== undefined && {
          publicKey: { format: 'key', value: readPublicKey(certificateFile) },
        }),
        interfaces: interfacesOf(config).map((one) => ({ query: true, admin: false, ...one })),
      },
    ],
  };
}

/** JSON Web Key of the HTTPS interface. */
const readPublicKey = (certificateFile: string): unknown =>
  new X509Certificate(readFileSync(certificateFile)).publicKey.export({ format: 'jwk' });

/** By default those that are on. Port 0 is another one at each start. */
function interfacesOf({ native, server }: SiteConfig): Config['native']['site']['interfaces'] {
  const { tcp, udp, tunnel, site } = native;
  if (site.interfaces.length > 0) return site.interfaces;
  const interfaces: typeof site.interfaces = [
    { protocol: 'UDP', port: udp.port ?? 0 },
    { protocol: 'TCP', port: tcp.port ?? 0 },
    { protocol: 'HTTP', port: tunnel ? server.port : 0 },
  ];
  return interfaces.filter(({ port }) => port > 0);
}
