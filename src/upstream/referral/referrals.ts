// Finds the server of a handle that no configured server is responsible for: by the sites in the record of its prefix.
import { ServiceError } from '../../errors.js';
import { upperAscii } from '../../handle/handle.js';
import type { Outcome } from '../../handle/outcome.js';
import { RESPONSE_CODE } from '../../handle/response-codes.js';
import type { SiteJson } from '../../handle/site-data.js';
import type { HandleValue } from '../../handle/value.js';
import type { HandleRead } from '../client.js';
import type { UpstreamServer } from '../upstream-server.js';
import { type SiteAddress, addressesOf } from './site-address.js';

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
    const prefix = upperAscii(read.handle.slice(0, read.handle.indexOf('/')));
    const serverOf = (address: SiteAddress): UpstreamServer => serverAt(address, prefix);
    let referral = await findReferral(`0.NA/${prefix}`);
    for (let hops = MAX_HOPS; hops > 0; hops--) {
      const sites = await sitesOf(referral, hops);
      if (sites === undefined) return { kind: 'not-found' };
      const addresses = addressesOf(sites, { ...read, ports });
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
