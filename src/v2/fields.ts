// The kinds of JSON values that properties of a v2 body are made of.
import { z } from 'zod';

const INT32_MIN = -(2 ** 31);
const INT32_MAX = 2 ** 31 - 1;

/** A whole number, also written as a text of digits, as EPICify does. */
export function wholeNumber(min = INT32_MIN, max = INT32_MAX) {
  const error = `give a whole number from ${min} to ${max}`;
  const fromText = (given: unknown) =>
    typeof given === 'string' && /^[+-]?\d+$/.test(given) ? Number(given) : given;
  return z.preprocess(fromText, z.int({ error }).min(min, { error }).max(max, { error }));
}

/** An index that a value of a record can have. */
export const valueIndex = wholeNumber(1);

/** Text that UTF-8 can hold: half a surrogate pair cannot be stored, and would come back as another. */
export const storableText = z
  .string({ error: 'give a text' })
  .refine((text) => !/\p{Surrogate}/u.test(text), { error: 'give whole Unicode characters' });

export const yesOrNo = z.boolean({ error: 'give true or false' });

/** One message of the native protocol has no more values (hdllib Common.java), and nothing in one is a longer list. */
export const MAX_MANY = 2048;

/** A list, whose length is looked at before its elements are. */
export function manyOf<T extends z.ZodType>(element: T, error = 'give an array') {
  const list = z.array(z.unknown(), { error }).max(MAX_MANY, { error: `give at most ${MAX_MANY}` });
  return list.pipe(z.array(element));
}
