// Builds the records of a chaos run, each with its name, its number and a private value.
import type { ControlledServer } from '../support/demo-control.js';
import { adminValue, textValue } from '../../src/dev-server/seed.js';

export const SECRET = 'nobody-may-read-this';

const PREFIX = '21.T11998';

/** Handles that are never written, and so must stay readable after the first read. */
export const CALM = Array.from({ length: 30 }, (_, at) => `${PREFIX}/calm-${at}`);
export const WRITTEN = Array.from({ length: 40 }, (_, at) => `${PREFIX}/written-${at}`);
export const UNKNOWN = Array.from({ length: 10 }, (_, at) => `${PREFIX}/unknown-${at}`);

/** Returns the TTL of a handle. Half of the handles have a TTL so short that they are mostly stale. */
const ttlOf = (handle: string): number => (Number(handle.split('-')[1]) % 2 === 0 ? 1 : 3600);

export const ttlMsOf = (handle: string): number => ttlOf(handle) * 1000;

export function recordOf(handle: string, number: number): Record<string, unknown>[] {
  const values = [
    textValue(1, 'URL', `https://example.org/${number}`),
    textValue(2, 'DESC', `this is ${handle}.`),
    { ...textValue(3, 'NOTE', SECRET), permissions: '1100' },
    adminValue(),
  ];
  return values.map((value) => ({ ...value, ttl: ttlOf(handle) }));
}

export function seedRecords(demo: ControlledServer): void {
  for (const handle of [...CALM, ...WRITTEN]) demo.put(handle, recordOf(handle, 0));
}

/** Returns the number in a record; undefined if the record belongs to a different handle. */
export function numberOf(handle: string, body: string): number | undefined {
  const { handle: named, values } = JSON.parse(body) as { handle?: string; values?: ValueLike[] };
  const [url, name] = [1, 2].map((wanted) => values?.find(({ index }) => index === wanted)?.data.value);
  const number = /^https:\/\/example\.org\/(\d+)$/.exec(String(url))?.[1];
  if (named?.toUpperCase() !== handle.toUpperCase() || name !== `this is ${handle}.`) return undefined;
  return number === undefined ? undefined : Number(number);
}

interface ValueLike {
  index: number;
  data: { value: unknown };
}
