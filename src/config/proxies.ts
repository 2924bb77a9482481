// How the proxies in front of this one are named in the configuration.
import { isIP } from 'node:net';

const NETWORKS = ['loopback', 'linklocal', 'uniquelocal'];

/** An address, a network in CIDR notation or a name that Express knows; undefined for anything else. */
export function readProxy(text: string): string | undefined {
  if (NETWORKS.includes(text)) return text;
  const [address = '', bits, ...rest] = text.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return undefined;
  const isNetwork =
    bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
  return isNetwork ? text : undefined;
}
