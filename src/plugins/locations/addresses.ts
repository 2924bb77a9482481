// Parses the `addresses` attribute of locations into sorted intervals.
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { plainAddress } from '../../http/client-address.js';
import { type Steps, flatMapGroups } from '../../time-slicer.js';

/** The number of 0.0.0.0: IPv4 addresses are numbered after all IPv6 addresses. */
const IPV4_FROM = 1n << 128n;

type Interval = readonly [first: bigint, last: bigint];

/** Sorted and disjoint intervals. */
export type AddressRanges = readonly Interval[];

/** Maximum length of an address or range; longer texts are invalid. */
const MAX_RANGE_CHARS = 64;

const RANGES_PER_STEP = 200;

/** Parses addresses and ranges. As in Java, an empty item means 127.0.0.1 (recordings "addresses …"). */
export function* readRanges(text: string): Steps<AddressRanges> {
  const read = (some: readonly string[]): Interval[] =>
    some.map((range) => readRange(range.trim())).filter((range) => range !== undefined);
  const found = yield* flatMapGroups(text.split(','), read, RANGES_PER_STEP);
  return merge(found.sort(byFirst));
}

const byFirst = ([one]: Interval, [other]: Interval): number => (one < other ? -1 : one > other ? 1 : 0);

function merge(sorted: readonly Interval[]): AddressRanges {
  const merged: [first: bigint, last: bigint][] = [];
  for (const [first, last] of sorted) {
    const before = merged.at(-1);
    if (before === undefined || before[1] < first) merged.push([first, last]);
    else if (last > before[1]) before[1] = last;
  }
  return merged;
}

/** Rejects host names. HDLProxy resolves them through DNS and responds with 500 if this fails. */
function readRange(text: string): Interval | undefined {
  if (text.length > MAX_RANGE_CHARS) return undefined;
  const [given = '', length] = (text === '' ? '127.0.0.1' : text).split('/', 2);
  const network = readAddress(given);
  if (network === undefined) return undefined;
  const bits = network < IPV4_FROM ? 128 : 32;
  // An overlong prefix matches the single address (recording "addresses "127.0.0.1/33"").
  const prefix = length === undefined ? bits : Math.min(bits, Number(length));
  if (!Number.isInteger(prefix) || prefix < 0) return undefined;
  const hostBits = BigInt(bits - prefix);
  const first = (network >> hostBits) << hostBits;
  return [first, first + (1n << hostBits) - 1n];
}

/** Converts an address to its number; returns undefined for an invalid address. */
export function readAddress(text: string): bigint | undefined {
  const plain = plainAddress(text);
  const version = isIP(plain);
  if (version === 0 || plain.includes('%')) return undefined;
  // ipaddr.js parses `::1.2.3.4` as `::ffff:1.2.3.4` unless a zero precedes it.
  const parsed = ipaddr.parse(plain.replace(/^::(?=\d+\.)/, '0::'));
  const number = BigInt(`0x${Buffer.from(parsed.toByteArray()).toString('hex')}`);
  return version === 4 ? IPV4_FROM + number : number;
}

export function isInRanges(address: bigint, ranges: AddressRanges): boolean {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ranges[middle]?.[0] ?? 0n) <= address) low = middle + 1;
    else high = middle;
  }
  const nearest = ranges[low - 1];
  return nearest !== undefined && address <= nearest[1];
}
