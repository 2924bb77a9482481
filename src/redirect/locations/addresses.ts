// Client addresses in locations: `addresses` as sorted intervals, and the country of an address.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type * as Maxmind from 'maxmind';
import type { CountryResponse } from 'maxmind';
import type { Steps } from '../../time-slicer.js';

/** First number of an IPv4 address: the numbers of IPv4 follow those of IPv6. */
const IPV4_FROM = 1n << 128n;

type Interval = readonly [first: bigint, last: bigint];

/** Sorted and disjoint intervals. */
export type AddressRanges = readonly Interval[];

/** Longer texts are not ranges. */
const MAX_RANGE_CHARS = 64;

/** Ranges read between two yields. */
const RANGES_PER_STEP = 200;

/** Reads addresses and ranges separated by commas; an empty item means 127.0.0.1, as in Java (recordings "addresses …"). */
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

/** Number of ranges that `readRanges` would read. */
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

/** Names are not resolved; HDLProxy queries DNS, and responds with 500 for an unknown name. */
function readRange(text: string): Interval | undefined {
  if (text.length > MAX_RANGE_CHARS) return undefined;
  const [given = '', length] = (text === '' ? '127.0.0.1' : text).split('/', 2);
  const network = readAddress(given);
  if (network === undefined) return undefined;
  const bits = network < IPV4_FROM ? 128 : 32;
  // A longer prefix counts as the whole address (recording "addresses "127.0.0.1/33"").
  const prefix = length === undefined ? bits : Math.min(bits, Number(length));
  if (!Number.isInteger(prefix) || prefix < 0) return undefined;
  const hostBits = BigInt(bits - prefix);
  const first = (network >> hostBits) << hostBits;
  return [first, first + (1n << hostBits) - 1n];
}

/** A dual-stack socket reports an IPv4 client as an IPv4-mapped IPv6 address. */
const plainAddress = (text: string): string => text.replace(/^::ffff:(?=\d+\.)/i, '');

/** Undefined for a text that is not an address. */
export function readAddress(text: string): bigint | undefined {
  const plain = plainAddress(text);
  const version = isIP(plain);
  if (version === 0 || plain.includes('%')) return undefined;
  // ipaddr.js reads `::1.2.3.4` as `::ffff:1.2.3.4`, unless a zero precedes it.
  const parsed = ipaddr.parse(plain.replace(/^::(?=\d+\.)/, '0::'));
  const number = BigInt(`0x${Buffer.from(parsed.toByteArray()).toString('hex')}`);
  return version === 4 ? IPV4_FROM + number : number;
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

/** Loads the package on first use, because it would slow down every start. */
const maxmind = (): typeof Maxmind => createRequire(import.meta.url)('maxmind') as typeof Maxmind;

export type CountryOf = (address: string) => string | undefined;

/** Reads the whole database, so that a look-up opens no file. */
export function openCountries(path: string): CountryOf {
  const { Reader, validate } = maxmind();
  const reader = new Reader<CountryResponse>(readFileSync(path));
  return function countryOf(address) {
    const text = plainAddress(address);
    if (!validate(text)) return undefined;
    const found = reader.get(text);
    return found?.country?.iso_code ?? found?.registered_country?.iso_code;
  };
}
