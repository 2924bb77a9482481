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

/** Reads the two; a date without `ttl_type` can only be absolute. */
export function readTtl({ ttlType, ttl, refuse }: TtlForm): Ttl {
  const number = seconds.safeParse(ttl);
  if (ttlType === 1 || (ttlType === undefined && date.safeParse(ttl).success)) {
    return number.success ? isoSeconds(number.data) : readDate(ttl, refuse);
  }
  if (ttl === undefined) return DEFAULT_TTL_SECONDS;
  if (number.success) return number.data;
  throw refuse('give whole seconds that fit 32 bits, or ttl_type 1 and a date');
}

/** A server keeps a date as 32 bits of seconds, and would turn a later one into nonsense. */
function readDate(ttl: unknown, refuse: Refuse): string {
  const text = date.safeParse(ttl);
  const whole = seconds.safeParse(text.success ? Math.floor(Date.parse(text.data) / 1000) : undefined);
  if (whole.success) return isoSeconds(whole.data);
  throw refuse('with ttl_type 1 give a date such as 2030-01-02T03:04:05Z, or its seconds since 1970');
}

const isoSeconds = (time: number): string => new Date(time * 1000).toISOString().replace('.000Z', 'Z');

/** The two as v2 shows them. */
export function showTtl(ttl: Ttl = DEFAULT_TTL_SECONDS): { ttl_type: 0 | 1; ttl: Ttl } {
  return { ttl_type: typeof ttl === 'string' ? 1 : 0, ttl };
}
