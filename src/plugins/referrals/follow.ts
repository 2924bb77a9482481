// Follows referrals to a foreign prefix: reads the sites in its prefix record and derives server addresses.
import { untilDeadline } from '../../clock.js';
import { ServiceError } from '../../errors.js';
import { MAX_HANDLE_BYTES, upperAscii, withoutSlashesAtEnd } from '../../handle/handle.js';
import { type Outcome, RESPONSE_CODE } from '../../handle/outcome.js';
import type { SiteJson, SiteServer } from '../../handle/value-data.js';
import { canParseUrl } from '../../handle/url.js';
import type { HandleValue } from '../../handle/value.js';
import { FIRST_ISSUE } from '../../http/request-body.js';
import type { HandleRead } from '../../upstream/contract.js';
import type { UpstreamServer } from '../../upstream/upstream-server.js';
import type { ReferralsConfig } from './plugin.js';
import { createHash } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { z } from 'zod';

export interface Referral {
  sites: readonly SiteJson[];
  /** Next handle to read if there is no site. */
  handle: string | undefined;
}

/** Maximum length of a chain of services or referrals (hdllib: 20). */
const MAX_HOPS = 8;

/**
 * Creates the reads of referred handles. `findReferral` reads a prefix record, or that of a service; undefined without
 * one. `serverAt` returns the server at an address from the prefix record of `prefix`.
 */
export function createReferrals(
  { referralPorts: ports, timeoutMs, queue }: ReferralsConfig['upstream'],
  findReferral: (handle: string, read: HandleRead) => Promise<Referral | undefined>,
  serverAt: (address: SiteAddress, prefix: string) => UpstreamServer,
) {
  /** Reads that have not ended, by prefix. */
  const running = new Map<string, number>();

  /** Returns the sites of a record, else those of its service; undefined if either does not exist. */
  async function sitesOf(
    referral: Referral | undefined,
    findNext: (handle: string) => Promise<Referral | undefined>,
    hops: number,
  ): Promise<readonly SiteJson[] | undefined> {
    if (referral === undefined) return undefined;
    const { sites, handle } = referral;
    if (sites.length > 0 || handle === undefined) return sites;
    if (hops === 0) throw tooManyReferrals();
    return sitesOf(await findNext(handle), findNext, hops - 1);
  }

  async function readReferred(read: HandleRead): Promise<Outcome> {
    const deadline = performance.now() + timeoutMs;
    /** The record may wait for itself: services can refer to each other, and a load is joined by all who need it. */
    const findUntil = (named: string): Promise<Referral | undefined> =>
      untilDeadline(findReferral(named, read), Math.max(0, deadline - performance.now()), referralTooLate);
    const { text: handle, prefix } = read.handle;
    let referral = await findUntil(`0.NA/${prefix}`);
    for (let hops = MAX_HOPS; hops > 0; hops--) {
      const sites = await sitesOf(referral, findUntil, hops);
      if (sites === undefined) return { kind: 'not-found' };
      const addresses = addressesOf(sites, { ...read, handle, ports });
      const servers = addresses.map((address) => () => serverAt(address, prefix));
      const outcome = await readFirst(servers, read, deadline);
      referral = referralIn(outcome);
      if (referral === undefined) return outcome;
    }
    throw tooManyReferrals();
  }

  /** Reads a handle from the servers in its prefix record. @throws ServiceError UPSTREAM_*, OVERLOADED */
  return async function readWithinBounds(read: HandleRead): Promise<Outcome> {
    const { prefix } = read.handle;
    const count = running.get(prefix) ?? 0;
    if (count >= queue) throw new ServiceError('OVERLOADED', { detail: TOO_MANY_READS, retryAfterMs: 1000 });
    running.set(prefix, count + 1);
    try {
      return await readReferred(read);
    } finally {
      const left = (running.get(prefix) ?? 1) - 1;
      if (left === 0) running.delete(prefix);
      else running.set(prefix, left);
    }
  };
}

/** Reads from the first server that responds; each is created only when it is asked. */
async function readFirst(
  servers: readonly (() => UpstreamServer)[],
  read: HandleRead,
  deadline: number,
): Promise<Outcome> {
  let failure = upstreamUnreachable('its prefix record names no HTTP interface');
  for (const open of servers) {
    if (performance.now() >= deadline) break;
    try {
      return await open().read(read, deadline);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      failure = error;
    }
  }
  throw failure;
}

/** Returns the referral in an outcome, if any: response codes 302 and 303, sent with status 300. */
export function referralIn(outcome: Outcome): Referral | undefined {
  if (outcome.kind !== 'refused') return undefined;
  const { responseCode, values, referralHandle } = outcome.members;
  const { serviceReferral, prefixReferral } = RESPONSE_CODE;
  if (responseCode !== serviceReferral && responseCode !== prefixReferral) return undefined;
  return referralTo(
    Array.isArray(values) ? (values as HandleValue[]) : [],
    typeof referralHandle === 'string' && isHandle(referralHandle) ? referralHandle : undefined,
  );
}

const SITE_TYPES: readonly string[] = ['HS_SITE', 'HS_SITE.6', 'HS_SITE.PREFIX', 'HS_NA_DELEGATE'];
const SERVICE_TYPES: readonly string[] = ['HS_SERV', 'HS_SERV.PREFIX'];

/** Maximum sites of a record; real records have under ten. */
const MAX_SITES = 64;

/** Returns the servers that values refer to. `handle`: the next handle to read if they name no service. */
export function referralTo(values: readonly HandleValue[], handle?: string): Referral {
  const sites = values.filter((value) => isOneOf(SITE_TYPES, value)).slice(0, MAX_SITES);
  const services = values.filter((value) => isOneOf(SERVICE_TYPES, value)).flatMap(readService);
  return { sites: sites.flatMap(readSite), handle: services[0] ?? handle };
}

/** Whether the value has one of the types. Values of a refusal may have none. */
const isOneOf = (types: readonly string[], { type }: Partial<HandleValue>): boolean =>
  typeof type === 'string' && types.includes(upperAscii(type));

/** The data of a site, with the members that this module reads, because the record is untrusted. */
const siteData = z.object({
  format: z.literal('site'),
  value: z.object({
    servers: z.array(
      z.object({
        address: z.string(),
        interfaces: z.array(z.object({ protocol: z.string(), port: z.int() })),
      }),
    ),
    attributes: z.array(z.object({ name: z.string(), value: z.string() })).optional(),
  }),
});

const readSite = ({ data }: HandleValue): SiteJson[] =>
  siteData.safeParse(data, FIRST_ISSUE).success ? [(data as { value: SiteJson }).value] : [];

function readService({ data }: HandleValue): string[] {
  const { value } = (data ?? {}) as { value?: unknown };
  return typeof value === 'string' && isHandle(value) ? [value] : [];
}

/** Whether a name from a record is short enough to be asked for. */
const isHandle = (name: string): boolean => name !== '' && Buffer.byteLength(name) <= MAX_HANDLE_BYTES;

/** Maximum bytes of a prefix or service record, which each read parses or compares; most have 2 KiB. */
const MAX_RECORD_BYTES = 128 * 1024;

export function assertReferralLength({ length }: { length: number }): void {
  if (length <= MAX_RECORD_BYTES) return;
  throw upstreamUnreachable(`its prefix record, or its service, has more than ${MAX_RECORD_BYTES} bytes`);
}

const upstreamUnreachable = (cause: string): ServiceError =>
  new ServiceError('UPSTREAM_UNREACHABLE', { diagnosis: { cause } });

const TOO_MANY_READS = 'too many reads of one prefix wait for its servers';

const referralTooLate = (): ServiceError =>
  new ServiceError('UPSTREAM_TIMEOUT', {
    diagnosis: { cause: 'its prefix record or its service was not read in time' },
  });

const tooManyReferrals = (): ServiceError => upstreamUnreachable(`more than ${MAX_HOPS} referrals`);

export interface SiteAddress {
  url: string;
  /** Public key from the site record. */
  publicKey: SiteServer['publicKey'];
}

interface ReferredRead {
  handle: string;
  authoritative: boolean;
  /** Ports that an untrusted record may use. */
  ports: readonly number[];
}

/** Maximum addresses per read: an untrusted record could list thousands of victim addresses. */
const MAX_ADDRESSES = 4;
const MAX_URL_CHARS = 2048;

const trimSlashes = (path: string): string => withoutSlashesAtEnd(path).replace(/^\/+/, '');

/** Returns addresses in the order to try. Authoritative reads use primary sites only, if any exist. */
export function addressesOf(
  sites: readonly SiteJson[],
  { handle, authoritative, ports }: ReferredRead,
): SiteAddress[] {
  const primary = sites.filter(({ primarySite }) => primarySite);
  const asked = authoritative && primary.length > 0 ? primary : sites;
  const addresses: SiteAddress[] = [];
  for (const site of asked) {
    if (addresses.length < MAX_ADDRESSES) addresses.push(...addressesAt(site, handle, ports));
  }
  return addresses.slice(0, MAX_ADDRESSES);
}

function addressesAt(site: SiteJson, handle: string, ports: ReferredRead['ports']): SiteAddress[] {
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
  const allowed = httpInterfaces(server).filter(({ port }) => ports.includes(port));
  return allowed.slice(0, MAX_ADDRESSES).flatMap(({ protocol, port }) => {
    const url = parseSiteUrl(`${protocol.toLowerCase()}://${host}:${port}/${trimSlashes(path)}`);
    return url === undefined ? [] : [{ url, publicKey }];
  });
}

/** Returns the HTTP interfaces for queries, HTTPS first. */
const httpInterfaces = ({ interfaces }: SiteServer): SiteServer['interfaces'] =>
  interfaces
    .filter(({ query, protocol }) => query && (protocol === 'HTTPS' || protocol === 'HTTP'))
    .toSorted((one, other) => other.protocol.length - one.protocol.length);

/** Returns the URL host; undefined for an all-zero address, a placeholder for the attribute `domain`. */
function hostOf(address: string): string | undefined {
  if (/^[0.:]*$/.test(address)) return undefined;
  return isIPv6(address) ? `[${address}]` : address;
}

/** Rejects more than host, port and path: an untrusted record must not set credentials or a query. */
function parseSiteUrl(text: string): string | undefined {
  if (!canParseUrl(text)) return undefined;
  const { username, password, search, hash, href } = new URL(text);
  return username + password + search + hash === '' ? href.replace(/\/$/, '') : undefined;
}

const HASH_BY_PREFIX = 0;
const HASH_BY_SUFFIX = 1;

/** Selects a handle's server by the protocol's hash: `abs(last four bytes of MD5(…)) mod n`. */
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
