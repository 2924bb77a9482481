// Finds the referral in the result of resolving a handle.
import { toText } from '../handle/bytes.js';
import type { HandleValue } from '../handle/value.js';
import { type Referral, referralIn } from '../upstream/referrals.js';
import type { Resolution } from './resolution.js';

/** Returns the referral in a prefix record or a refusal; undefined if the handle does not exist. */
export function referralOf(resolution: Resolution): Referral | undefined {
  if (resolution.kind === 'refused') return referralIn({ ...resolution.refused, kind: 'refused' });
  const { entry } = resolution;
  if (entry.kind === 'not-found') return undefined;
  return { values: entry.kind === 'found' ? (JSON.parse(toText(entry.values)) as HandleValue[]) : [] };
}
