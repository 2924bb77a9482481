// Connections to servers that strangers name in their prefix records: to public addresses only, and to the named key.
import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import { isIP } from 'node:net';
import type { TLSSocket } from 'node:tls';
import ipaddr from 'ipaddr.js';
import { buildConnector } from 'undici';
import type { SiteAddress } from './site-address.js';

/** `code` of the error for an address in a private network. */
const PRIVATE_ADDRESS = 'ERR_REFERRAL_PRIVATE';
/** `code` of the error for a certificate that neither an authority nor the site record vouches for. */
const UNKNOWN_KEY = 'ERR_REFERRAL_KEY';

interface ReferredOptions extends Pick<SiteAddress, 'publicKey'> {
  allowPrivateNetworks: boolean;
}

const CONNECT_MS = 5000;

export function createReferredConnector(options: ReferredOptions): buildConnector.connector {
  const { allowPrivateNetworks, publicKey } = options;
  const connect = buildConnector({
    timeout: CONNECT_MS,
    // Judged below: a Handle server has a self-signed certificate with the key of its site record.
    rejectUnauthorized: false,
    maxCachedSessions: 0,
    ...(!allowPrivateNetworks && { lookup: lookupPublic }),
  });
  return function connectReferred(target, connected) {
    // An address in the URL is not looked up.
    const address = target.hostname.replace(/^\[|\]$/g, '');
    if (!allowPrivateNetworks && isIP(address) !== 0 && isPrivate(address)) {
      connected(privateAddress(address), null);
      return;
    }
    connect(target, (...[error, socket]) => {
      if (error) connected(error, null);
      else if (target.protocol === 'https:' && !isTrusted(socket as TLSSocket, publicKey)) {
        socket.destroy();
        connected(
          Object.assign(new Error('certificate of an unknown authority and key'), { code: UNKNOWN_KEY }),
          null,
        );
      } else connected(null, socket);
    });
  };
}

function isTrusted(socket: TLSSocket, publicKey: SiteAddress['publicKey']): boolean {
  if (socket.authorized) return true;
  const certificate = socket.getPeerX509Certificate();
  if (certificate?.publicKey.asymmetricKeyType !== 'rsa' || publicKey?.format !== 'key') return false;
  const { n, e } = certificate.publicKey.export({ format: 'jwk' });
  const named = publicKey.value as { kty?: unknown; n?: unknown; e?: unknown } | null;
  return named?.kty === 'RSA' && named.n === n && named.e === e;
}

type LookupCallback = (
  error: NodeJS.ErrnoException | null,
  address: string | LookupAddress[],
  family?: number,
) => void;

/** Looks up a name, and keeps its public addresses: the name may be under the control of a stranger. */
function lookupPublic(host: string, options: LookupOptions, found: LookupCallback): void {
  lookup(host, { ...options, all: true }, (error, addresses) => {
    const allowed = error ? [] : addresses.filter(({ address }) => !isPrivate(address));
    const [first] = allowed;
    if (first === undefined) found(error ?? privateAddress(host), '');
    else if (options.all === true) found(null, allowed);
    else found(null, first.address, first.family);
  });
}

const privateAddress = (host: string): NodeJS.ErrnoException =>
  Object.assign(new Error(`${host} is in a private network`), { code: PRIVATE_ADDRESS });

/** IPv4 in the last four bytes (deprecated by RFC 4291 §2.5.5.1), which `ipaddr.js` takes for public. */
const COMPATIBLE = ipaddr.IPv6.parseCIDR('::/96');

/** The host of virtual machines on Azure, at a public address. */
const AZURE_HOST = '168.63.129.16';

/**
 * Everything that is not publicly routed, by the registries of IANA (RFC 6890) that `ipaddr.js` keeps, and every IPv6
 * address that leads to an IPv4 network: translated, tunnelled or mapped ones, and the site-local ones of RFC 3879.
 */
export function isPrivate(address: string): boolean {
  // The interface of a link-local address is no part of it.
  const parsed = ipaddr.process(address.split('%', 1).join(''));
  if (parsed.range() !== 'unicast' || parsed.toString() === AZURE_HOST) return true;
  return parsed instanceof ipaddr.IPv6 && parsed.match(COMPATIBLE);
}
