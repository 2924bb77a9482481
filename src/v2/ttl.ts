// `ttl_type` and `ttl`: relative seconds or a date, in v2's form and in the record interface's.
import { z } from 'zod';
import type { Ttl } from '../handle/value.js';
import type { Refuse } from './bad-body.js';
import { wholeNumber } from './fields.js';

export const DEFAULT_TTL_SECONDS = 86_400;

interface TtlForm {
  ttlType?: number | undefined;
  ttl?: number | string | undefined;
  refuse: Refuse;
}

const seconds = wholeNumber();
const date = z.union([z.iso.datetime({ offset: true }), z.iso.date()]);

/**
 * Reads the two. `ttl_type` is the judge where it is given; without it a date is absolute and a number
 * relative. The contract calls relative seconds negative: of those the amount counts, and nothing
 * negative is ever stored.
 */
export function readTtl({ ttlType, ttl, refuse }: TtlForm): Ttl {
  const number = seconds.safeParse(ttl);
  if (ttlType === 1 || (ttlType === undefined && date.safeParse(ttl).success)) {
    return readTime(number.success ? number.data : wholeSeconds(ttl), refuse);
  }
  if (ttl === undefined) return DEFAULT_TTL_SECONDS;
  const amount = seconds.safeParse(number.success ? Math.abs(number.data) : undefined);
  if (amount.success) return amount.data;
  throw refuse('give whole seconds whose amount fits 31 bits, or ttl_type 1 and a date');
}

/** A server keeps a time as 32 bits of seconds since 1970, and would turn a later one into nonsense. */
function readTime(time: number | undefined, refuse: Refuse): string {
  const whole = seconds.safeParse(time);
  if (whole.success && whole.data >= 0) return isoSeconds(whole.data);
  throw refuse('with ttl_type 1 give a date such as 2030-01-02T03:04:05Z, or its seconds since 1970');
}

function wholeSeconds(ttl: unknown): number | undefined {
  const text = date.safeParse(ttl);
  return text.success ? Math.floor(Date.parse(text.data) / 1000) : undefined;
}

const isoSeconds = (time: number): string => new Date(time * 1000).toISOString().replace('.000Z', 'Z');

/** The two as v2 shows them. */
export function showTtl(ttl: Ttl = DEFAULT_TTL_SECONDS): { ttl_type: 0 | 1; ttl: Ttl } {
  return { ttl_type: typeof ttl === 'string' ? 1 : 0, ttl };
}
