// Fields of a request value and their errors; permissions, TTL and references in both directions.
import { z } from 'zod';
import { ServiceError } from '../../errors.js';
import type { JsonLimits } from '../../handle/json.js';
import {
  DEFAULT_PERMISSIONS,
  DEFAULT_TTL_SECONDS,
  type Ttl,
  type ValueReference,
  isoSeconds,
  lastFourPermissions,
} from '../../handle/value.js';
import { type Steps, flatMapGroups } from '../../time-slicer.js';

const INT32_MIN = -(2 ** 31);
const INT32_MAX = 2 ** 31 - 1;

/** Creates an integer field that also accepts digit strings, which EPICify sends. */
export function integerField(min = INT32_MIN, max = INT32_MAX) {
  const error = `give a whole number from ${min} to ${max}`;
  const numberFrom = (given: unknown) =>
    typeof given === 'string' && /^[+-]?\d+$/.test(given) ? Number(given) : given;
  return z.preprocess(numberFrom, z.int({ error }).min(min).max(max));
}

/** Created once, because creating a schema costs more than parsing a reference. */
const integer = integerField();

export const WHOLE_CHARACTERS = 'give whole Unicode characters';

export const textField = z
  .string({ error: 'give a string' })
  .refine((text) => text.isWellFormed(), { error: WHOLE_CHARACTERS });

export const booleanField = z.boolean({ error: 'give true or false' });

/** Maximum values per native message (hdllib Common.java), and maximum items per list in a value. */
export const MAX_ITEMS = 2048;

/** Limits of a body: a record of 2,048 values, written as in a response, has 22,528 commas and brackets. */
export const BODY_LIMITS: JsonLimits = { elements: MAX_ITEMS, values: 12 * MAX_ITEMS };

/** Creates an array field that checks its length before its elements. */
export function arrayField<T extends z.ZodType>(element: T, error = 'give an array') {
  const list = z.array(z.unknown(), { error }).max(MAX_ITEMS, { error: `give at most ${MAX_ITEMS}` });
  return list.pipe(z.array(element));
}

/** Creates an error for one property; `advice` describes a valid value. */
export type Reject = (advice: string) => ServiceError;

/** Creates the `Reject` for a property of the value at `position`, naming both as in JSON: `[0].ttl`. */
export const rejectAt =
  (position: number, property: string): Reject =>
  (advice) =>
    bodyError(`[${position}].${property}: ${advice}`);

export const bodyError = (detail: string): ServiceError => new ServiceError('V2_BAD_BODY', { detail });

/** Formats the first schema issue with its path below `root`: `perms.add_handle: give true or false`. */
export function firstIssue({ issues }: z.ZodError, root = ''): string {
  const [{ path, message } = { path: [], message: 'not understood' }] = issues;
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`));
  return `${[root, ...steps].join('').replace(/^\./, '')}: ${message}`.replace(/^: /, '');
}

export const permissionFields = {
  privs: z
    .string({ error: 'give four characters such as rwr-' })
    .regex(/^[r-][w-][r-][w-]$/)
    .nullish(),
  admin_read: booleanField.nullish(),
  admin_write: booleanField.nullish(),
  pub_read: booleanField.nullish(),
  pub_write: booleanField.nullish(),
};

type Permissions = { [name in keyof typeof permissionFields]?: z.infer<(typeof permissionFields)[name]> };

/** Returns four permission digits. Booleans override `privs`, because clients send back the `privs` that they read. */
export function readPermissionFields({ privs, ...flags }: Permissions): string {
  const defaults = privs ?? DEFAULT_PRIVS;
  return [flags.admin_read, flags.admin_write, flags.pub_read, flags.pub_write]
    .map((given, at) => ((given ?? defaults[at] !== '-') ? '1' : '0'))
    .join('');
}

/** Formats permission digits: `rwr-` for `1110`. */
export function showPermissions(permissions: string | undefined): string {
  const digits = lastFourPermissions(permissions);
  return ['r', 'w', 'r', 'w'].map((letter, at) => (digits[at] === '1' ? letter : '-')).join('');
}

const DEFAULT_PRIVS = showPermissions(DEFAULT_PERMISSIONS);

/**
 * Returns four digits as they are sent. The Handle server ignores the first of four digits, administrator read
 * (recording "PERM5"); withholding that right requires five digits.
 */
export function permissionsToSend(digits: string): { permissions?: string } {
  if (digits === DEFAULT_PERMISSIONS) return {};
  return { permissions: digits.startsWith('0') ? `0${digits}` : digits };
}

const date = z.union([z.iso.datetime({ offset: true }), z.iso.date()]);

/**
 * Parses a TTL. `ttl_type` takes precedence; without it, a date is absolute and a number relative. Relative
 * seconds are negative in the v2 contract, so their sign is ignored.
 */
export function readTtlFields(
  ttlType: number | undefined,
  ttl: number | string | undefined,
  reject: Reject,
): Ttl {
  const number = integer.safeParse(ttl);
  if (ttlType === 1 || (ttlType === undefined && date.safeParse(ttl).success))
    return readExpiry(number.success ? number.data : secondsOfDate(ttl), reject);
  if (ttl === undefined) return DEFAULT_TTL_SECONDS;
  const amount = integer.safeParse(number.success ? Math.abs(number.data) : undefined);
  if (amount.success) return amount.data;
  throw reject('give whole seconds whose amount fits 31 bits, or ttl_type 1 and a date');
}

/** Parses an absolute expiry. The Handle server stores it in 32 bits and corrupts times after January 2038. */
function readExpiry(time: number | undefined, reject: Reject): string {
  const expiry = integer.safeParse(time);
  if (expiry.success && expiry.data >= 0) return isoSeconds(expiry.data);
  throw reject('with ttl_type 1 give a date such as 2030-01-02T03:04:05Z, or its seconds since 1970');
}

function secondsOfDate(ttl: unknown): number | undefined {
  const text = date.safeParse(ttl);
  return text.success ? Math.floor(Date.parse(text.data) / 1000) : undefined;
}

export function showTtl(ttl: Ttl = DEFAULT_TTL_SECONDS): { ttl_type: 0 | 1; ttl: Ttl } {
  return { ttl_type: typeof ttl === 'string' ? 1 : 0, ttl };
}

const referenceAdvice = 'give {"idx": 1, "handle": "prefix/suffix"} or "1:prefix/suffix"';

const referenceText = textField.transform((text, context): ValueReference => {
  const [, digits, handle] = /^(-?\d+):(.*)$/s.exec(text) ?? [];
  const read = integer.safeParse(digits);
  if (read.success && handle !== undefined) return { handle, index: read.data };
  context.addIssue({ code: 'custom', message: referenceAdvice });
  return z.NEVER;
});

const referenceObject = z
  .object({ idx: integer, handle: textField })
  .transform(({ idx, handle }): ValueReference => ({ handle, index: idx }));

/** Also accepts `""` (EPICify: no references), and strings and quoted indexes, which the original service drops. */
export const referencesField = z.preprocess(
  (given) => (given === '' ? [] : given),
  arrayField(z.union([referenceText, referenceObject], { error: referenceAdvice })),
);

/** Formats references from unvalidated Handle server JSON, which may be ten thousands. */
export function* showReferences(references: unknown): Steps<string[]> {
  if (!Array.isArray(references)) return [];
  const show = (group: readonly Partial<ValueReference>[]): string[] =>
    group.filter(isReference).map(({ handle, index }) => `${index}:${handle}`);
  return yield* flatMapGroups(references, show);
}

const isReference = (given: Partial<ValueReference> | null): given is ValueReference =>
  typeof given?.handle === 'string' && typeof given.index === 'number';
