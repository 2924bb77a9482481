// Whether an address lies in the `addresses` of a location.
import { BlockList, isIP } from 'node:net';

const MAX_RANGES = 1000;

/** Addresses and ranges, separated by commas; an empty one means 127.0.0.1, as Java reads it (recordings "addresses …"). */
export function isInRanges(address: string, ranges: string): boolean {
  const caller = familyOf(address);
  return (
    caller !== undefined &&
    ranges
      .split(',', MAX_RANGES)
      .some((range) => isInRange(caller, range.trim() === '' ? '127.0.0.1' : range.trim()))
  );
}

interface Address {
  text: string;
  family: 'ipv4' | 'ipv6';
}

/** A name is not looked up; HDLProxy asks DNS, and responds with 500 when that knows no such name. */
function isInRange(caller: Address, range: string): boolean {
  const [text = '', length] = range.split('/', 2);
  const network = familyOf(text);
  if (network?.family !== caller.family) return false;
  const bits = caller.family === 'ipv4' ? 32 : 128;
  // A longer prefix is taken for the whole address (recording "addresses "127.0.0.1/33"").
  const prefix = length === undefined ? bits : Math.min(bits, Number(length));
  if (!Number.isInteger(prefix) || prefix < 0) return false;
  const list = new BlockList();
  list.addSubnet(network.text, prefix, network.family);
  return list.check(caller.text, caller.family);
}

/** A socket names an IPv4 caller in the form of IPv6. */
function familyOf(address: string): Address | undefined {
  const text = address.replace(/^::ffff:(?=\d+\.)/i, '');
  const version = isIP(text);
  return version === 0 ? undefined : { text, family: version === 4 ? 'ipv4' : 'ipv6' };
}
