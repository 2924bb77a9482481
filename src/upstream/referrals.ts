// Follows referrals to the servers of a foreign prefix: the sites that its record names, and the address of a server.
import { ServiceError } from '../errors.js';
import { upperAscii, withoutSlashesAtEnd } from '../handle/handle.js';
import type { Outcome } from '../handle/outcome.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import type { SiteJson, SiteServer } from '../handle/site-data.js';
import type { HandleValue } from '../handle/value.js';
import type { HandleRead } from './client.js';
import type { UpstreamServer } from './upstream-server.js';
import { createHash } from 'node:crypto';
import { isIPv6 } from 'node:net';

/** What a record says about where handles are; undefined for a handle that does not exist. */
export interface Referral {
  values: readonly HandleValue[];
  /** The handle to look at when the values name no site. */
  handle?: string;
}

export interface ReferralDeps {
  /** Reads a prefix record or the record of a service, from the cache where it can. */
  findReferral: (handle: string) => Promise<Referral | undefined>;
  /** `prefix`: whose record names the address. */
  serverAt: (address: SiteAddress, prefix: string) => UpstreamServer;
  /** That may be connected to. */
  ports: Parameters<typeof addressesOf>[1]['ports'];
  timeoutMs: number;
}

/** Reads a handle at the server that its prefix record names. @throws ServiceError UPSTREAM_* */
export type ReadReferred = (read: HandleRead) => Promise<Outcome>;

/** Services that name services, and servers that refer to servers. hdllib allows 20. */
const MAX_HOPS = 8;

export function createReferrals({ findReferral, serverAt, ports, timeoutMs }: ReferralDeps): ReadReferred {
  /** The sites in the values, else those of the services that they name. Undefined without a record. */
  async function sitesOf(referral: Referral | undefined, hops: number): Promise<SiteJson[] | undefined> {
    if (referral === undefined) return undefined;
    const sites = referral.values.flatMap(readSite);
    const [service] = referral.values.flatMap(readService);
    const next = service ?? referral.handle;
    if (sites.length > 0 || next === undefined) return sites;
    if (hops === 0) throw tooManyReferrals();
    return sitesOf(await findReferral(next), hops - 1);
  }

  return async function readReferred(read) {
    const deadline = performance.now() + timeoutMs;
    const { text: handle, prefix } = read.handle;
    const serverOf = (address: SiteAddress): UpstreamServer => serverAt(address, prefix);
    let referral = await findReferral(`0.NA/${prefix}`);
    for (let hops = MAX_HOPS; hops > 0; hops--) {
      const sites = await sitesOf(referral, hops);
      if (sites === undefined) return { kind: 'not-found' };
      const addresses = addressesOf(sites, { ...read, handle, ports });
      const outcome = await readAtSites(addresses, read, { serverAt: serverOf, deadline });
      referral = referralIn(outcome);
      if (referral === undefined) return outcome;
    }
    throw tooManyReferrals();
  };
}

async function readAtSites(
  addresses: readonly SiteAddress[],
  read: HandleRead,
  { serverAt, deadline }: { serverAt: (address: SiteAddress) => UpstreamServer; deadline: number },
): Promise<Outcome> {
  let failure = failed('its prefix record names no HTTP interface');
  for (const address of addresses) {
    const timeoutMs = deadline - performance.now();
    if (timeoutMs <= 0) break;
    try {
      return await serverAt(address).read({ ...read, timeoutMs });
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      failure = error;
    }
  }
  throw failure;
}

/** Service and prefix referrals: response codes 302 and 303, sent with status 300. */
export function referralIn(outcome: Outcome): Referral | undefined {
  if (outcome.kind !== 'refused') return undefined;
  const { responseCode, values, referralHandle } = outcome.members;
  const { serviceReferral, prefixReferral } = RESPONSE_CODE;
  if (responseCode !== serviceReferral && responseCode !== prefixReferral) return undefined;
  return {
    values: Array.isArray(values) ? (values as HandleValue[]) : [],
    ...(typeof referralHandle === 'string' && referralHandle !== '' && { handle: referralHandle }),
  };
}

const SITE_TYPES: readonly string[] = ['HS_SITE', 'HS_SITE.6', 'HS_SITE.PREFIX', 'HS_NA_DELEGATE'];
const SERVICE_TYPES: readonly string[] = ['HS_SERV', 'HS_SERV.PREFIX'];

function readSite({ type, data }: HandleValue): SiteJson[] {
  const { format, value } = (data ?? {}) as { format?: unknown; value?: unknown };
  return SITE_TYPES.includes(upperAscii(type)) && format === 'site' && isSite(value) ? [value] : [];
}

/** Whether it has what is read of a site: the record is a stranger's. */
function isSite(value: unknown): value is SiteJson {
  const { servers, attributes = [] } = (value ?? {}) as { servers?: unknown; attributes?: unknown };
  return isListOf(servers, isServer) && isListOf(attributes, hasTexts('name', 'value'));
}

const isServer = (server: unknown): boolean =>
  hasTexts('address')(server) && isListOf((server as { interfaces?: unknown }).interfaces, isInterface);

const isInterface = (one: unknown): boolean =>
  hasTexts('protocol')(one) && Number.isInteger((one as { port?: unknown }).port);

const isListOf = (value: unknown, isItem: (item: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(isItem);

const hasTexts =
  (...names: string[]) =>
  (value: unknown): boolean =>
    names.every((name) => typeof (value as Record<string, unknown> | null | undefined)?.[name] === 'string');

function readService({ type, data }: HandleValue): string[] {
  const { value } = (data ?? {}) as { value?: unknown };
  return SERVICE_TYPES.includes(upperAscii(type)) && typeof value === 'string' ? [value] : [];
}

const failed = (cause: string): ServiceError =>
  new ServiceError('UPSTREAM_UNREACHABLE', { diagnosis: { cause } });

const tooManyReferrals = (): ServiceError => failed(`more than ${MAX_HOPS} referrals`);

export interface SiteAddress {
  /** Scheme, host and port, and the path before every other path. */
  url: string;
  /** As in the site record. */
  publicKey: SiteServer['publicKey'];
}

interface ReferredRead {
  handle: string;
  authoritative: boolean;
  /** Where a stranger's record may lead. */
  ports: readonly (readonly [first: number, last: number])[];
}

/** That one read tries: the record is a stranger's, and could name thousands of addresses of others. */
const MAX_ADDRESSES = 4;
const MAX_URL_CHARS = 2048;

const trimSlashes = (path: string): string => withoutSlashesAtEnd(path).replace(/^\/+/, '');

/** At most four. With several sites those that are asked first come first; a primary site alone is authoritative. */
export function addressesOf(
  sites: readonly SiteJson[],
  { handle, authoritative, ports }: ReferredRead,
): SiteAddress[] {
  const primary = sites.filter(({ primarySite }) => primarySite);
  const asked = authoritative && primary.length > 0 ? primary : sites;
  return asked.flatMap((site) => addressesAt(site, { handle, ports })).slice(0, MAX_ADDRESSES);
}

function addressesAt(
  site: SiteJson,
  { handle, ports }: Pick<ReferredRead, 'handle' | 'ports'>,
): SiteAddress[] {
  const { servers, attributes = [] } = site;
  const server = servers[servers.length > 1 ? serverNumber(site, handle) : 0];
  if (server === undefined) return [];
  const attribute = (name: string): string | undefined =>
    attributes.find((one) => one.name === `${name}.${server.serverId}`)?.value ??
    attributes.find((one) => one.name === name)?.value;
  const host = attribute('domain') ?? hostOf(server.address);
  if (host === undefined) return [];
  const path = attribute('path') ?? '';
  if (host.length + path.length > MAX_URL_CHARS) return [];
  const { publicKey } = server;
  const allowed = httpInterfaces(server).filter(({ port }) =>
    ports.some(([first, last]) => port >= first && port <= last),
  );
  return allowed.slice(0, MAX_ADDRESSES).flatMap(({ protocol, port }) => {
    const url = parseUrl(`${protocol.toLowerCase()}://${host}:${port}/${trimSlashes(path)}`);
    return url === undefined ? [] : [{ url, publicKey }];
  });
}

/** HTTPS first. */
const httpInterfaces = ({ interfaces }: SiteServer): SiteServer['interfaces'] =>
  interfaces
    .filter(({ query, protocol }) => query && (protocol === 'HTTPS' || protocol === 'HTTP'))
    .toSorted((one, other) => other.protocol.length - one.protocol.length);

/** The address of all zeros stands for the name in the attribute `domain`. */
function hostOf(address: string): string | undefined {
  if (/^[0.:]*$/.test(address)) return undefined;
  return isIPv6(address) ? `[${address}]` : address;
}

/** Nothing but a host, a port and a path: a site record of a stranger names no credentials and no query. */
function parseUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { username, password, search, hash, href } = new URL(text);
  return username + password + search + hash === '' ? href.replace(/\/$/, '') : undefined;
}

const HASH_BY_PREFIX = 0;
const HASH_BY_SUFFIX = 1;

/** Facts of the protocol: `abs(last four bytes of MD5(…)) mod n`. */
function serverNumber({ hashOption, servers }: SiteJson, handle: string): number {
  const slash = handle.indexOf('/');
  const part =
    hashOption === HASH_BY_PREFIX
      ? handle.slice(0, slash)
      : hashOption === HASH_BY_SUFFIX
        ? handle.slice(slash + 1)
        : handle;
  const digest = createHash('md5').update(upperAscii(part)).digest();
  return Math.abs(digest.readInt32BE(12)) % servers.length;
}
