// Builds the bench's records, about 600 bytes of JSON each, with handles numbered from 1.
import { DEMO_PASSWORD, DEMO_PREFIX, adminValue, textValue } from '../../src/dev-server/seed.js';

export const PREFIX = DEMO_PREFIX;
/** Prefixes in `servers`, each on a separate Handle server. */
export const PREFIXES = [PREFIX, '21.T11997', '20.500.12345'] as const;
export const BASIC = `Basic ${Buffer.from(`300%3A${PREFIX}/USER01:${DEMO_PASSWORD}`).toString('base64')}`;

export const nameOf = (number: number): string => `H${String(number).padStart(7, '0')}`;

export const targetPath = (handle: string): string => `/api/handles/${handle}`;

export const targetOf = (name: string, prefix: string = PREFIX): string => targetPath(`${prefix}/${name}`);

export const redirectTargetOf = (name: string): string => `/${PREFIX}/${name}`;

/** Returns a record's values for a PUT. `version` distinguishes a record from its predecessor. */
export function valuesOf(name: string, version = 0): Record<string, unknown>[] {
  return [
    textValue(1, 'URL', `https://repository.example.org/objects/${name}`),
    textValue(2, 'DESC', `version ${String(version).padStart(9, '0')} of a data set`),
    textValue(3, 'CHECKSUM', 'sha256:9f86d081884c7d659a2feaa0c55ad015'),
    adminValue(),
  ];
}

/** Returns values as a Handle server stores them. */
const storedValuesOf = (name: string): Record<string, unknown>[] =>
  valuesOf(name).map((value) => ({ ...value, ttl: 86_400, timestamp: '2026-01-01T00:00:00Z' }));

/** Returns a Handle server's response for a record. */
export function answerOf(name: string): string {
  return JSON.stringify({ responseCode: 1, handle: `${PREFIX}/${name}`, values: storedValuesOf(name) });
}

/** Returns a record as a line of an export. */
export function exportedRecord(number: number): string {
  const name = nameOf(number);
  const times = { requestedAt: '2026-01-01', staleAt: '2026-01-01', deleteAt: '2126-01-01' };
  return JSON.stringify({ handle: `${PREFIX}/${name}`, ...times, values: storedValuesOf(name) });
}

export const versionIn = (answer: string): number => Number(/version (\d{9})/.exec(answer)?.[1] ?? -1);
