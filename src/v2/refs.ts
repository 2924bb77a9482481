// `refs`: references to values of other handles, in all the forms clients write them.
import { z } from 'zod';
import type { ValueReference } from '../handle/value.js';
import { manyOf, storableText, wholeNumber } from './fields.js';

const advice = 'give {"idx": 1, "handle": "prefix/suffix"} or "1:prefix/suffix"';

/** Made once: that takes longer than to read a reference. */
const index = wholeNumber();

const asText = storableText.transform((text, context): ValueReference => {
  const [, digits, handle] = /^(-?\d+):(.*)$/s.exec(text) ?? [];
  const read = index.safeParse(digits);
  if (read.success && handle !== undefined) return { handle, index: read.data };
  context.addIssue({ code: 'custom', message: advice });
  return z.NEVER;
});

const asObject = z
  .object({ idx: wholeNumber(), handle: storableText })
  .transform(({ idx, handle }): ValueReference => ({ handle, index: idx }));

/** The original drops texts and indexes in quotes without a word; EPICify writes `""` for none. */
export const refsField = z.preprocess(
  (given) => (given === '' ? [] : given),
  manyOf(z.union([asText, asObject], { error: advice })),
);

/** The references as v2 shows them; nobody has looked before at what a server sent. */
export function showRefs(references: unknown): string[] {
  if (!Array.isArray(references)) return [];
  return references.filter(isReference).map(({ handle, index }) => `${index}:${handle}`);
}

const isReference = (given: Partial<ValueReference> | null): given is ValueReference =>
  typeof given?.handle === 'string' && typeof given.index === 'number';
