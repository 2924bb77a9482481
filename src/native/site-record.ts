// The site record of this instance: a query-only site that is no primary (RFC 3651 §3.2.2).
import type { SiteJson } from '../handle/site-data.js';

interface SiteSettings {
  address?: string | undefined;
  domain?: string | undefined;
  interfaces: readonly { protocol: string; port: number }[];
  serialNumber: number;
  description: string;
  /** JSON Web Key of the HTTPS interface. */
  publicKey: unknown;
}

/** Clients that find it ask their `domain` for the address. */
const NO_ADDRESS = '0.0.0.0';

export function siteRecord(settings: SiteSettings): SiteJson {
  const { address, domain, interfaces, serialNumber, description, publicKey } = settings;
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
        ...(publicKey !== undefined && { publicKey: { format: 'key', value: publicKey } }),
        interfaces: interfaces.map(({ protocol, port }) => ({ query: true, admin: false, protocol, port })),
      },
    ],
  };
}
