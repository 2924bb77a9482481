// Generates a workload's requests, identical for every peer and in every run.
import { type Random, randomFrom } from '../support/random.js';
import { createZipf } from './random.js';
import { PREFIX, nameOf, redirectTargetOf, targetOf, valuesOf } from './records.js';

export interface Size {
  handles: number;
  /** Number of requests to draw. */
  length: number;
  seed: number;
}

/**
 * Maps a handle number to a prefix and a name; spreads numbers evenly, and numbers names from 1 per prefix.
 */
export function spreadOver(prefixes: readonly string[], number: number): { prefix: string; name: string } {
  const prefix = prefixes[(number - 1) % prefixes.length] ?? PREFIX;
  return { prefix, name: nameOf(Math.ceil(number / prefixes.length)) };
}

/** Prefix of a target to request with credentials. */
export const WITH_CREDENTIALS = '+';
/** Prefix of a target to write, followed by a space and the PUT body. */
export const WRITTEN = '!';
/** Prefix of a target to revalidate, followed by a space and the ETag for If-None-Match. */
export const REVALIDATED = '~';

export const everyHandle = (count: number, from = 1): string[] =>
  Array.from({ length: count }, (_, at) => targetOf(nameOf(from + at)));

export function zipfTargets({ handles, length, seed }: Size): string[] {
  const draw = createZipf(handles, randomFrom(seed));
  return Array.from({ length }, () => targetOf(nameOf(draw())));
}

export function redirectTargets({ handles, length, seed }: Size): string[] {
  const draw = createZipf(handles, randomFrom(seed));
  return Array.from({ length }, () => redirectTargetOf(nameOf(draw())));
}

/** Generates a Zipf load in which one request in a hundred is a PUT of the current record. */
export function writingTargets({ handles, length, seed }: Size): string[] {
  const random = randomFrom(seed);
  const draw = createZipf(handles, random);
  return Array.from({ length }, () => {
    const name = nameOf(draw());
    const target = targetOf(name);
    return random() < 0.01 ? `${WRITTEN}${target} ${JSON.stringify(valuesOf(name))}` : target;
  });
}

/** Typical filters of resolvers and curators, mostly for the URL. */
const FILTERS = [
  ...['type=URL', 'type=URL', 'type=URL', 'type=URL', 'index=1', 'index=1'],
  ...[
    'type=DESC',
    'type=CHECKSUM',
    'index=100',
    'type=URL&type=CHECKSUM',
    'index=1&index=2',
    'type=10320/loc',
  ],
];

const SPELLINGS: readonly ((name: string, prefix: string) => string)[] = [
  (name, prefix) => `/api/handles/${prefix.toLowerCase()}/${name}`,
  (name, prefix) => `/api/handles/${prefix}/${name.toLowerCase()}`,
  (name, prefix) => `/api/handles/${prefix}%2F${name}`,
  (name, prefix) => `/api/handles/${prefix}%2f${name}`,
  (name, prefix) => `/api/handles/${prefix}/%48${name.slice(1)}`,
];

/**
 * Generates a mix: 30 % with a filter, 10 % in a different spelling, 5 % for missing handles, 2 % with
 * auth=true, 1 % with credentials, and the rest plain. Missing handles repeat, as broken links do.
 */
export function mixedTargets({
  handles,
  length,
  seed,
  prefixes = [PREFIX],
}: Size & { prefixes?: readonly string[] }): string[] {
  const random = randomFrom(seed);
  const draw = createZipf(handles, random);
  const drawUnknown = createZipf(Math.ceil(handles / 20), random);
  const one = (): string => {
    const percent = random() * 100;
    const { name, prefix } = spreadOver(prefixes, draw());
    const target = targetOf(name, prefix);
    if (percent < 30) return `${target}?${oneOf(FILTERS, random) ?? ''}`;
    if (percent < 40) return oneOf(SPELLINGS, random)?.(name, prefix) ?? '';
    if (percent < 45) return targetOf(`UNKNOWN${drawUnknown()}`, prefix);
    if (percent < 47) return `${target}?auth=true`;
    if (percent < 48) return `${WITH_CREDENTIALS}${target}`;
    return target;
  };
  return Array.from({ length }, one);
}

/** Returns a resolver's typical requests: mostly redirects for a long tail of handles, some unknown. */
export function tailTargets({ handles, length, seed }: Size): string[] {
  const random = randomFrom(seed);
  const draw = createZipf(handles, random, 0.7);
  const drawUnknown = createZipf(Math.ceil(handles / 20), random, 0.7);
  const one = (): string => {
    const percent = random() * 100;
    const name = nameOf(draw());
    if (percent < 80) return redirectTargetOf(name);
    if (percent < 90) return targetOf(name);
    if (percent < 95) return redirectTargetOf(`UNKNOWN${drawUnknown()}`);
    return percent < 97.5 ? `${targetOf(name)}?type=URL` : (oneOf(SPELLINGS, random)?.(name, PREFIX) ?? '');
  };
  return Array.from({ length }, one);
}

/** Returns the requests of readers for a long tail of records; one request in five is a crawler's, for a new name. */
export function crawledTargets({ handles, length, seed }: Size): string[] {
  const random = randomFrom(seed);
  const draw = createZipf(handles, random, 0.7);
  const first = handles + seed * length;
  return Array.from({ length }, (_, at) => targetOf(nameOf(at % CRAWLED_EVERY === 0 ? first + at : draw())));
}

/** One request in this many is the crawler's. */
export const CRAWLED_EVERY = 5;

/** Returns requests that alternate between new and earlier handles, and between redirects and records. */
export function firstTargets(length: number): string[] {
  const random = randomFrom(1);
  return Array.from({ length }, (_, at) => {
    const latest = Math.floor(at / 2) + 1;
    const name = nameOf(at % 2 === 0 ? latest : Math.ceil(random() * latest));
    return at % 4 < 2 ? redirectTargetOf(name) : targetOf(name);
  });
}

const oneOf = <T>(list: readonly T[], random: Random): T | undefined =>
  list[Math.floor(random() * list.length)];
