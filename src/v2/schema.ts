// Reads the body of a v2 PUT or POST: strict about what a value means, tolerant about how clients write it.
import { z } from 'zod';
import { badBody, firstComplaint, refuseAt } from './bad-body.js';
import { readContent } from './content.js';
import { MAX_MANY, storableText, valueIndex, wholeNumber } from './fields.js';
import { privsFields, readPrivs } from './privs.js';
import { refsField } from './refs.js';
import { readTtl } from './ttl.js';
import type { V2Input } from './value.js';

/** Missing and -1 ask for an index, as in the original. */
const toAssign = (idx: unknown): unknown => (idx === null || idx === -1 || idx === '-1' ? undefined : idx);

/** `timestamp` is not read at all, nor is anything else: the server stamps values with its own clock. */
export const bodyValue = z.object(
  {
    idx: z.preprocess(toAssign, valueIndex.optional()),
    type: storableText,
    data: z.string({ error: 'give base64 as a text' }).nullish(),
    parsed_data: z.unknown().optional(),
    ttl_type: wholeNumber(0, 1).nullish(),
    ttl: z.union([z.number(), z.string()], { error: 'give seconds or a date' }).nullish(),
    refs: refsField.nullish(),
    ...privsFields,
  },
  { error: 'give an object' },
);

/**
 * Reads the list of values.
 *
 * @throws ServiceError V2_BAD_BODY whose detail names the value by its place, and the property
 */
export function readInput(body: unknown): V2Input[] {
  if (!Array.isArray(body)) throw badBody('give an array of values');
  if (body.length > MAX_MANY) throw badBody(`give at most ${MAX_MANY} values`);
  const inputs = body.map(readValue);
  refuseDuplicates(inputs);
  return inputs;
}

function readValue(given: unknown, place: number): V2Input {
  const parsed = bodyValue.safeParse(given);
  if (!parsed.success) throw badBody(at(place, firstComplaint(parsed.error)));
  const { idx, type, data, parsed_data, ttl_type, ttl, refs, ...privs } = parsed.data;
  return {
    ...(idx !== undefined && { idx }),
    type,
    data: readContent({
      type,
      data: data ?? undefined,
      parsed: parsed_data,
      refuseData: refuseAt(place, 'data'),
      refuseParsed: refuseAt(place, 'parsed_data'),
    }),
    ttl: readTtl({ ttlType: ttl_type ?? undefined, ttl: ttl ?? undefined, refuse: refuseAt(place, 'ttl') }),
    references: refs ?? [],
    permissions: readPrivs(privs),
  };
}

/** A complaint about a property has its name in front, one about the whole value has not. */
const at = (place: number, complaint: string): string =>
  complaint.startsWith('give ') ? `[${place}]: ${complaint}` : `[${place}].${complaint}`;

function refuseDuplicates(inputs: readonly V2Input[]): void {
  const firstPlaces = new Map<number, number>();
  for (const [place, { idx }] of inputs.entries()) {
    if (idx === undefined) continue;
    const first = firstPlaces.get(idx);
    if (first !== undefined) throw refuseAt(place, 'idx')(`give another index, [${first}] has ${idx} too`);
    firstPlaces.set(idx, place);
  }
}
