// The site record that names this instance: from the configuration, or an HS_SITE value of the prefix record.
import { toText } from '../handle/bytes.js';
import { type SiteJson, encodeSite } from '../handle/site-data.js';
import type { HandleValue } from '../handle/value.js';
import { encodeData } from '../handle/value-data.js';
import type { Resolver } from '../resolver/resolver.js';
import { UNKNOWN_SERIAL } from './codec/message.js';
import { type SiteConfig, siteRecord } from './site-record.js';

export interface SiteInfo {
  /** Stands in every answer. */
  readonly serial: number;
  /** HS_SITE data; undefined when there is no site record. Rejects when the upstream fails. */
  read: () => Promise<Buffer | undefined>;
}

export const NO_SITE: SiteInfo = { serial: UNKNOWN_SERIAL, read: () => Promise.resolve(undefined) };

type Resolve = Pick<Resolver<unknown>, 'resolve'>;

export function createSiteInfo(config: SiteConfig, resolver: Resolve): SiteInfo {
  const { address, domain, handle } = config.native.site;
  if (address !== undefined || domain !== undefined) return siteOfRecord(siteRecord(config));
  return handle === undefined ? NO_SITE : siteOfHandle(handle, resolver);
}

function siteOfRecord(record: SiteJson): SiteInfo {
  const data = encodeSite(record);
  return { serial: record.serialNumber, read: () => Promise.resolve(data) };
}

function siteOfHandle(handle: string, resolver: Resolve): SiteInfo {
  let serial = UNKNOWN_SERIAL;
  return {
    get serial() {
      return serial;
    },
    async read() {
      const resolution = await resolver.resolve(handle, { authoritative: false });
      if (resolution.kind !== 'entry' || resolution.entry.kind !== 'found') return undefined;
      const value = siteValue(JSON.parse(toText(resolution.entry.values)) as HandleValue[]);
      if (value === undefined) return undefined;
      const data = encodeData(value.data);
      serial = data.readUInt16BE(SERIAL_AT);
      return data;
    },
  };
}

/** Bytes 0 to 3 are the versions of format and protocol. */
const SERIAL_AT = 4;

/** The mirror, of several sites; a site in another format than its JSON may be it as well. */
function siteValue(values: readonly HandleValue[]): HandleValue | undefined {
  const sites = values.filter(({ type }) => type === 'HS_SITE');
  const isPrimary = ({ data }: HandleValue): boolean =>
    (data as { value?: Partial<SiteJson> } | undefined)?.value?.primarySite === true;
  return sites.find((site) => !isPrimary(site)) ?? sites[0];
}
