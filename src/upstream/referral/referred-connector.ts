// Connections to servers that strangers name in their prefix records: to public addresses only, and to the named key.
import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import { BlockList, isIP } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { buildConnector } from 'undici';
import type { SiteAddress } from './site-address.js';

/** `code` of the error for an address in a private network. */
export const PRIVATE_ADDRESS = 'ERR_REFERRAL_PRIVATE';
/** `code` of the error for a certificate that neither an authority nor the site record vouches for. */
export const UNKNOWN_KEY = 'ERR_REFERRAL_KEY';

export interface ReferredOptions extends Pick<SiteAddress, 'publicKey'> {
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

/** Loopback, private, link-local, shared, multicast and reserved networks (RFC 6890). */
const PRIVATE_NETWORKS = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.168.0.0/16', '198.18.0.0/15', '224.0.0.0/4', '240.0.0.0/4'],
  // The last three hold IPv4 addresses: NAT64, 6to4 and Teredo.
  ...['::/96', '::1/128', 'fc00::/7', 'fe80::/10', 'ff00::/8', '64:ff9b::/96', '2002::/16', '2001::/32'],
];

const privateNetworks = new BlockList();
for (const network of PRIVATE_NETWORKS) {
  const [address = '', bits] = network.split('/');
  privateNetworks.addSubnet(address, Number(bits), address.includes(':') ? 'ipv6' : 'ipv4');
}

/** A mapped address (`::ffff:10.0.0.1`) is checked as IPv4. */
const isPrivate = (address: string): boolean =>
  privateNetworks.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
