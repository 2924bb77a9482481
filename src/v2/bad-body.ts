// How a body is refused: the detail names the value and the property that has to change.
import type { z } from 'zod';
import { ServiceError } from '../errors.js';

/** Makes the error for a text that says what to give instead. */
export type Refuse = (advice: string) => ServiceError;

/** Refuses a property of the value at this place of the list, both named as in JSON: `[0].ttl`. */
export function refuseAt(place: number, property: string): Refuse {
  return (advice) => badBody(`[${place}].${property}: ${advice}`);
}

export function badBody(detail: string): ServiceError {
  return new ServiceError('V2_BAD_BODY', { detail });
}

/** What a schema complains about first, with the way to it: `perms.add_handle: give true or false`. */
export function firstComplaint({ issues }: z.ZodError): string {
  const [{ path, message } = { path: [], message: 'not understood' }] = issues;
  return `${pathText(path)}: ${message}`.replace(/^: /, '');
}

const pathText = (path: readonly PropertyKey[]): string =>
  path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
    .join('')
    .replace(/^\./, '');
