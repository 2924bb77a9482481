// The headers of a limit, as structured fields (RFC 9651; draft-ietf-httpapi-ratelimit-headers).
import type { BucketLimit, BucketState } from '../coordination/token-bucket.js';
import type { TrafficRule } from '../config/schema-traffic.js';

export interface LimitWindow extends BucketLimit {
  quota: number;
  windowSeconds: number;
}

/** A limit of a rule: its requests per window, and the size of its bucket, which is the same unless `burst` is set. */
export function windowOf({
  perSecond,
  perMinute = 0,
  burst,
}: NonNullable<TrafficRule['limit']>): LimitWindow {
  const windowSeconds = perSecond === undefined ? 60 : 1;
  const quota = perSecond ?? perMinute;
  return { quota, windowSeconds, intervalMs: (windowSeconds * 1000) / quota, burst: burst ?? quota };
}

/** @example limitHeaders('crawlers', …) // [['RateLimit-Policy', '"crawlers";q=600;w=60'], ['RateLimit', '"crawlers";r=599;t=1']] */
export function limitHeaders(
  name: string,
  { quota, windowSeconds }: LimitWindow,
  { left, fullInMs }: BucketState,
): [name: string, value: string][] {
  const quoted = `"${name.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
  return [
    ['RateLimit-Policy', `${quoted};q=${quota};w=${windowSeconds}`],
    ['RateLimit', `${quoted};r=${left};t=${Math.ceil(fullInMs / 1000)}`],
  ];
}
