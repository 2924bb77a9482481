// Validates the values in a PUT or POST body: strict in meaning, tolerant in spelling.
import { z } from 'zod';
import { parseUpToIssue } from '../../http/json-limits.js';
import type { Steps } from '../../time-slicer.js';
import {
  MAX_ITEMS,
  bodyError,
  firstIssue,
  integerField,
  permissionFields,
  readPermissions,
  readTtl,
  referencesField,
  rejectAt,
  textField,
} from './attributes.js';
import { type V2Input, readData } from './data.js';

/** Treats -1 like a missing index, as in the original service: both request a free index. */
const withoutRequest = (idx: unknown): unknown =>
  idx === null || idx === -1 || idx === '-1' ? undefined : idx;

/** Ignores unknown properties, and `timestamp`, which the Handle server sets. */
export const bodyValue = z.object(
  {
    idx: z.preprocess(withoutRequest, integerField(1).optional()),
    type: textField,
    parsed_data: z.unknown().optional(),
    data: z.string({ error: 'give a string' }).nullish(),
    timestamp: z.unknown().optional(),
    ttl_type: integerField(0, 1).nullish(),
    ttl: z.union([z.number(), z.string()], { error: 'give seconds or a date' }).nullish(),
    refs: referencesField.nullish(),
    ...permissionFields,
  },
  { error: 'give an object' },
);

/** Parses the values. @throws ServiceError V2_BAD_BODY, which names the position and property of an invalid value */
export function* readInputs(body: unknown): Steps<V2Input[]> {
  if (!Array.isArray(body)) throw bodyError('give an array of values');
  if (body.length === 0) throw bodyError('give at least one value');
  if (body.length > MAX_ITEMS) throw bodyError(`give at most ${MAX_ITEMS} values`);
  const inputs: V2Input[] = [];
  for (const [position, given] of body.entries()) {
    inputs.push(readInput(given, position));
    yield;
  }
  assertDistinctIndexes(inputs);
  return inputs;
}

function readInput(given: unknown, position: number): V2Input {
  const parsed = parseUpToIssue(bodyValue, given);
  if (!parsed.success) throw bodyError(withPosition(position, firstIssue(parsed.error)));
  const { idx, type, data, parsed_data, ttl_type, ttl, refs, ...permissions } = parsed.data;
  return {
    ...(idx !== undefined && { idx }),
    type,
    data: readData({
      type,
      data: data ?? undefined,
      parsed: parsed_data,
      rejectData: rejectAt(position, 'data'),
      rejectParsed: rejectAt(position, 'parsed_data'),
    }),
    ttl: readTtl({
      ttlType: ttl_type ?? undefined,
      ttl: ttl ?? undefined,
      reject: rejectAt(position, 'ttl'),
    }),
    references: refs ?? [],
    permissions: readPermissions(permissions),
  };
}

/**
 * Prefixes an issue with the value's position. An issue names a property, unless it concerns the whole value.
 */
const withPosition = (position: number, issue: string): string =>
  issue.startsWith('give ') ? `[${position}]: ${issue}` : `[${position}].${issue}`;

function assertDistinctIndexes(inputs: readonly V2Input[]): void {
  const positions = new Map<number, number>();
  for (const [position, { idx }] of inputs.entries()) {
    if (idx === undefined) continue;
    const first = positions.get(idx);
    if (first !== undefined) throw rejectAt(position, 'idx')(`give another index; [${first}] has ${idx} too`);
    positions.set(idx, position);
  }
}
