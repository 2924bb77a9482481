// Builds the registration files of a Handle service, as CNRI's set-up tool does.
import { zipSync } from 'fflate';
import { decodePublicKey, type SiteJson, type SiteServer, encodeSite } from '../handle/value-data.js';

/** A Handle service to register. */
export interface HandleService {
  address: string;
  /** Additional IPv6 address of a service whose `address` is IPv4. */
  address6: string | undefined;
  /** `udp` is 0 for a service without UDP. */
  ports: { tcp: number; udp: number; http: number };
  serialNumber: number;
  description: string;
  contact: { organization: string; email: string; name: string | undefined; phone: string | undefined };
  /** Undefined until the registry has assigned a prefix. */
  prefix: string | undefined;
}

/** Public key files (HS_PUBKEY data). */
export interface PublicKeys {
  server: Buffer;
  administrator: Buffer;
}

/**
 * Builds the files of a primary site. The registry receives only `sitebndl.zip`, whose entry names, and the
 * placeholder `YOUR_PREFIX`, match CNRI's set-up tool.
 *
 * @throws RangeError when a key is invalid
 */
export function registrationFiles(
  service: HandleService,
  keys: PublicKeys,
  now: Date,
): Record<'siteinfo.json' | 'siteinfo.bin' | 'contactdata.dct' | 'sitebndl.zip', Buffer> {
  const site = siteOf(service, keys.server);
  const binary = encodeSite(site);
  const contact = Buffer.from(contactData(service.contact));
  const administrator = Buffer.from(`300:0.NA/${service.prefix ?? 'YOUR_PREFIX'}\n`);
  const bundle = {
    repl_admin: administrator,
    'admpub.bin': keys.administrator,
    'siteinfo.bin': binary,
    'contactdata.dct': contact,
  };
  return {
    'siteinfo.json': Buffer.from(JSON.stringify(site, undefined, 2)),
    'siteinfo.bin': binary,
    'contactdata.dct': contact,
    'sitebndl.zip': Buffer.from(zipSync(bundle, { mtime: now })),
  };
}

function siteOf(
  { description, address, address6, serialNumber, ports }: HandleService,
  key: Buffer,
): SiteJson {
  return {
    version: 1,
    protocolVersion: '2.11',
    serialNumber,
    primarySite: true,
    multiPrimary: false,
    attributes: [
      { name: 'desc', value: description },
      ...(address6 === undefined ? [] : [{ name: 'alt_addr.1', value: address6 }]),
    ],
    servers: [
      {
        serverId: 1,
        address,
        publicKey: { format: 'key', value: decodePublicKey(key) },
        interfaces: interfacesOf(ports),
      },
    ],
  };
}

/** Announces administration like the set-up tool, because registries might reject a site without it. */
const interfacesOf = ({ tcp, udp, http }: HandleService['ports']): SiteServer['interfaces'] => [
  { query: true, admin: true, protocol: 'TCP', port: tcp },
  ...(udp === 0 ? [] : [{ query: true, admin: false, protocol: 'UDP', port: udp }]),
  { query: true, admin: true, protocol: 'HTTP', port: http },
];

/** Writes CNRI's StreamTable format. */
function contactData({ organization, email, name, phone }: HandleService['contact']): string {
  const fields = { org_name: organization, contact_email: email, contact_name: name, contact_phone: phone };
  const lines = Object.entries(fields).flatMap(([key, value]) =>
    value === undefined ? [] : [`  "${key}" = "${value.replace(/["\\]/g, '\\$&')}"`],
  );
  return `${['{', ...lines, '}'].join('\n')}\n`;
}
