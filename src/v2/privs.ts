// Permissions of a value: `rwr-` and four booleans in v2, four or five digits in the record interface.
import { z } from 'zod';
import { DEFAULT_PERMISSIONS, lastFourPermissions } from '../handle/value.js';
import { yesOrNo } from './fields.js';

const LETTERS = 'rwrw';

export const privsFields = {
  privs: z
    .string({ error: 'give four characters such as rwr-' })
    .regex(/^[r-][w-][r-][w-]$/, { error: 'give four characters such as rwr-' })
    .nullish(),
  admin_read: yesOrNo.nullish(),
  admin_write: yesOrNo.nullish(),
  pub_read: yesOrNo.nullish(),
  pub_write: yesOrNo.nullish(),
};

type Privs = { [name in keyof typeof privsFields]?: z.infer<(typeof privsFields)[name]> };

/** Four digits. A boolean wins over `privs`, which stays in a list that was read, changed and sent back. */
export function readPrivs({ privs, admin_read, admin_write, pub_read, pub_write }: Privs): string {
  const shown = privs ?? showPrivs(DEFAULT_PERMISSIONS);
  return [admin_read, admin_write, pub_read, pub_write]
    .map((given, place) => ((given ?? shown[place] !== '-') ? '1' : '0'))
    .join('');
}

/** The permissions of an upstream value as v2 shows them. */
export function showPrivs(permissions: string | undefined): string {
  const digits = lastFourPermissions(permissions);
  return Array.from(LETTERS, (letter, place) => (digits[place] === '1' ? letter : '-')).join('');
}

/**
 * Permissions as a server takes them. Its reader never looks at the first of four digits, which is
 * the administrator's right to read: without it, five have to be sent.
 */
export function permissionsToSend(permissions: string | undefined): { permissions?: string } {
  const digits = lastFourPermissions(permissions);
  if (digits === DEFAULT_PERMISSIONS) return {};
  return { permissions: digits.startsWith('0') ? `0${digits}` : digits };
}
