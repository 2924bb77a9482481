// Site record of this instance: a query-only site (RFC 3651 §3.2.2).
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type SiteJson, encodeData, encodeSite } from '../../handle/value-data.js';
import type { HandleRef } from '../../handle/handle.js';
import type { HandleValue } from '../../handle/value.js';
import type { Host } from '../../host.js';
import { type ParsedValues, valuesOf } from '../../resolver/parsed-records.js';
import type { Resolver } from '../../resolver/resolver.js';
import { UNKNOWN_SERIAL } from './codec.js';
import type { NativeConfig } from './plugin.js';

/** Placeholder that makes clients resolve `domain` instead. */
const NO_ADDRESS = '0.0.0.0';

/**
 * Builds the site record. `isPrimary`: for clients that know no other site, because hdllib sends the AUTH flag only
 * to primary sites. @throws if the certificate cannot be read
 */
export function siteRecord(config: NativeConfig, { isPrimary } = { isPrimary: false }): SiteJson {
  const { address, domain, serialNumber, certificateFile } = config.native.site;
  return {
    version: 1,
    protocolVersion: '2.11',
    serialNumber,
    primarySite: isPrimary,
    multiPrimary: false,
    attributes: [
      { name: 'desc', value: 'Caching resolver proxy' },
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

const readPublicKey = (certificateFile: string): unknown =>
  new X509Certificate(readFileSync(certificateFile)).publicKey.export({ format: 'jwk' });

/** Returns the configured interfaces, else the enabled ones without port 0, which changes at each start. */
function interfacesOf({ native, server }: NativeConfig): NativeConfig['native']['site']['interfaces'] {
  const { tcp, udp, site } = native;
  if (site.interfaces.length > 0) return site.interfaces;
  const interfaces: typeof site.interfaces = [
    { protocol: 'UDP', port: udp.port ?? 0 },
    { protocol: 'TCP', port: tcp.port ?? 0 },
    { protocol: 'HTTP', port: server.port },
  ];
  return interfaces.filter(({ port }) => port > 0);
}

export interface SiteInfo {
  readonly serial: number;
  /** Returns HS_SITE data; undefined without a site record. Rejects if the upstream fails. */
  read: () => Promise<Buffer | undefined>;
}

export const NO_SITE: SiteInfo = { serial: UNKNOWN_SERIAL, read: () => Promise.resolve(undefined) };

export function createSiteInfo(config: NativeConfig, { refOf, resolver }: Host): SiteInfo {
  const { address, domain, handle } = config.native.site;
  if (address !== undefined || domain !== undefined) return siteOfRecord(siteRecord(config));
  return handle === undefined ? NO_SITE : siteOfHandle(refOf(handle), resolver);
}

function siteOfRecord(record: SiteJson): SiteInfo {
  const data = encodeSite(record);
  return { serial: record.serialNumber, read: () => Promise.resolve(data) };
}

function siteOfHandle(handle: HandleRef, resolver: Resolver): SiteInfo {
  let serial = UNKNOWN_SERIAL;
  return {
    get serial() {
      return serial;
    },
    async read() {
      const resolution = await resolver.resolve(handle, { authoritative: false });
      const value = resolution.kind === 'entry' ? siteValue(valuesOf(resolution.entry)) : undefined;
      if (value === undefined) return undefined;
      const data = encodeData(value.data);
      serial = data.readUInt16BE(SERIAL_AT);
      return data;
    },
  };
}

/** Offset of the serial number, after the format and protocol versions. */
const SERIAL_AT = 4;

/** Returns the first non-primary site, also of an unknown format, else the first site. */
function siteValue(values: ParsedValues): HandleValue | undefined {
  const sites = values.filter(({ type }) => type === 'HS_SITE');
  const isPrimary = ({ data }: HandleValue): boolean =>
    (data as { value?: Partial<SiteJson> } | undefined)?.value?.primarySite === true;
  return sites.find((site) => !isPrimary(site)) ?? sites[0];
}
