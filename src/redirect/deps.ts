// What the room needs from outside.
import type { Hit } from '../record/resolve.js';
import type { Resolution, StaleReason } from '../resolver/resolution.js';
import type { House } from '../html/layout.js';
import type { TargetDeps } from './target.js';

export interface RedirectDeps {
  resolve: (handle: string, options: { authoritative: boolean }) => Promise<Resolution>;
  /** The key a handle is kept under: two spellings of one handle have the same. */
  keyOf: (handle: string) => string;
  allowedHosts: readonly string[] | undefined;
  house: House;
  clientMaxAgeMs: number;
  gzipMinBytes: number;
  onStale: (reason: StaleReason) => void;
  /** A redirect that depends on nothing but target and entry can be prepared for the next time. */
  onHit: (hit: Hit) => void;
  /** Told of failures that are nobody's fault but ours. */
  onUnexpected: (error: unknown) => void;
  now: () => number;
  random: () => number;
}

/** The same, with what the room makes of it once. */
export interface RoomDeps extends RedirectDeps {
  target: TargetDeps;
  pageHeaders: Record<string, string>;
}
