// The `addresses` of a location as sorted intervals, and the search for an address in them.
import { isIP } from 'node:net';
import type { Steps } from '../../time-slicer.js';

/** The addresses of both families as numbers: those of IPv4 come behind those of IPv6. */
const IPV4_FROM = 1n << 128n;

type Interval = readonly [first: bigint, last: bigint];

/** Sorted, and apart from each other. */
export type AddressRanges = readonly Interval[];

/** Longer texts are no range. */
const MAX_RANGE_CHARS = 64;

/** Between two interruptions. */
const RANGES_PER_STEP = 200;

/** Addresses and ranges, separated by commas; an empty one means 127.0.0.1, as Java reads it (recordings "addresses …"). */
export function* readRanges(text: string): Steps<AddressRanges> {
  const found: Interval[] = [];
  let count = 0;
  for (let at = 0, end = 0; end !== -1; at = end + 1) {
    end = text.indexOf(',', at);
    const range = readRange(text.slice(at, end === -1 ? undefined : end).trim());
    if (range !== undefined) found.push(range);
    if (++count % RANGES_PER_STEP === 0) yield;
  }
  return merge(found.sort(byFirst));
}

/** How many ranges `readRanges` would read. */
export function countRanges(text: string): number {
  let count = 1;
  for (let at = text.indexOf(','); at !== -1; at = text.indexOf(',', at + 1)) count++;
  return count;
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

/** A name is not looked up; HDLProxy asks DNS, and responds with 500 when that knows no such name. */
function readRange(text: string): Interval | undefined {
  if (text.length > MAX_RANGE_CHARS) return undefined;
  const [given = '', length] = (text === '' ? '127.0.0.1' : text).split('/', 2);
  const network = readAddress(given);
  if (network === undefined) return undefined;
  const bits = network < IPV4_FROM ? 128 : 32;
  // A longer prefix is taken for the whole address (recording "addresses "127.0.0.1/33"").
  const prefix = length === undefined ? bits : Math.min(bits, Number(length));
  if (!Number.isInteger(prefix) || prefix < 0) return undefined;
  const hostBits = BigInt(bits - prefix);
  const first = (network >> hostBits) << hostBits;
  return [first, first + (1n << hostBits) - 1n];
}

/** Undefined for a text that is no address. A socket names an IPv4 caller in the form of IPv6. */
export function readAddress(text: string): bigint | undefined {
  const plain = text.replace(/^::ffff:(?=\d+\.)/i, '');
  const version = isIP(plain);
  if (version === 4) return IPV4_FROM + readIPv4(plain);
  return version === 6 && !plain.includes('%') ? readIPv6(plain) : undefined;
}

const readIPv4 = (text: string): bigint =>
  BigInt(text.split('.').reduce((number, part) => number * 256 + Number(part), 0));

function readIPv6(text: string): bigint {
  // The last two groups may be written as an IPv4 address (RFC 4291 section 2.2).
  const [head = '', tail = ''] = text.replace(/(?<=:)\d+\.\d+\.\d+\.\d+$/, asGroups).split('::', 2);
  const before = groupsOf(head);
  const behind = groupsOf(tail);
  const between = Array<string>(8 - before.length - behind.length).fill('0');
  return BigInt(`0x${[...before, ...between, ...behind].map((group) => group.padStart(4, '0')).join('')}`);
}

const groupsOf = (text: string): string[] => (text === '' ? [] : text.split(':'));

function asGroups(dotted: string): string {
  const number = Number(readIPv4(dotted));
  return `${Math.floor(number / 65_536).toString(16)}:${(number % 65_536).toString(16)}`;
}

/** Binary search. */
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
