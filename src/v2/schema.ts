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

/** Anything else is ignored. The descriptions are those of the OpenAPI document. */
export const bodyValue = z.object(
  {
    idx: z.preprocess(toAssign, valueIndex.optional()),
    type: storableText,
    parsed_data: z
      .unknown()
      .optional()
      .describe(
        'The content: a text; an object for HS_ADMIN, a list for HS_VLIST. Required where there is no `data`.',
      ),
    data: z
      .string({ error: 'give a text' })
      .nullish()
      .describe(
        'The content: bytes where it is canonical base64 (padded, unused bits zero, lines of 60 characters allowed), else a text.',
      ),
    timestamp: z
      .unknown()
      .optional()
      .describe('Accepted and ignored: the Handle server stamps values with its own clock.'),
    ttl_type: wholeNumber(0, 1)
      .nullish()
      .describe(
        '0: `ttl` is seconds; 1: `ttl` is a time. Without it a date is a time and a number is seconds.',
      ),
    ttl: z
      .union([z.number(), z.string()], { error: 'give seconds or a date' })
      .nullish()
      .describe(
        'Relative seconds, of which the amount counts (-300 is 300), or with `ttl_type` 1 a date or its seconds since 1970.',
      ),
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
  if (body.length === 0) throw badBody('give at least one value');
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
