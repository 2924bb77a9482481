// How long a server asks to be left alone (RFC 9110 §10.2.3).

/** Milliseconds of a Retry-After header, in seconds or as a date; undefined when it says nothing usable. */
export function retryAfterMs(header: string | null | undefined, now: number): number | undefined {
  const text = header?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  // Date.parse takes a lot more than an HTTP date, but none of it begins like one.
  const until = /^[A-Z][a-z]+,/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(until) ? undefined : Math.max(0, until - now);
}
