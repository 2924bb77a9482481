// Field validators of a v2 request body, and the errors that name the rejected property.
import { z } from 'zod';
import { ServiceError } from '../../errors.js';

const INT32_MIN = -(2 ** 31);
const INT32_MAX = 2 ** 31 - 1;

/** An integer, also as a text of digits, as EPICify sends it. */
export function integerField(min = INT32_MIN, max = INT32_MAX) {
  const error = `give a whole number from ${min} to ${max}`;
  const fromText = (given: unknown) =>
    typeof given === 'string' && /^[+-]?\d+$/.test(given) ? Number(given) : given;
  return z.preprocess(fromText, z.int({ error }).min(min).max(max));
}

/** UTF-8 cannot store half a surrogate pair. */
export const textField = z
  .string({ error: 'give a text' })
  .refine((text) => !/\p{Surrogate}/u.test(text), { error: 'give whole Unicode characters' });

export const booleanField = z.boolean({ error: 'give true or false' });

/** A message of the native protocol holds no more values (hdllib Common.java); the same bound serves lists in a value. */
export const MAX_ITEMS = 2048;

/** Checks the length before the elements. */
export function arrayField<T extends z.ZodType>(element: T, error = 'give an array') {
  const list = z.array(z.unknown(), { error }).max(MAX_ITEMS, { error: `give at most ${MAX_ITEMS}` });
  return list.pipe(z.array(element));
}

/** Makes the error for one property; `advice` says what to send instead. */
export type Reject = (advice: string) => ServiceError;

/** Rejects a property of the value at this position, both named as in JSON: `[0].ttl`. */
export function rejectAt(position: number, property: string): Reject {
  return (advice) => bodyError(`[${position}].${property}: ${advice}`);
}

export function bodyError(detail: string): ServiceError {
  return new ServiceError('V2_BAD_BODY', { detail });
}

/** The first issue of a schema with its path: `perms.add_handle: give true or false`. */
export function firstIssue({ issues }: z.ZodError): string {
  const [{ path, message } = { path: [], message: 'not understood' }] = issues;
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`));
  return `${steps.join('').replace(/^\./, '')}: ${message}`.replace(/^: /, '');
}
