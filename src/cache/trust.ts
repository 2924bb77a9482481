// Since when an entry can be trusted, by what is known of Redis.

/**
 * Whoever wrote while Redis was away says so when Redis is found again; not everybody finds it at the
 * same moment (a new try each second, 2 s to connect, a heartbeat of 1 s). Until all have said it, Redis may
 * hold what is over.
 */
const OTHERS_RETURN_MS = 5000;

/**
 * Every second it is proved that messages are heard. Without that for so long, by a clock that nobody sets, this
 * process may have stood still (suspended, or stopped by a signal): it might read questions before it reads what
 * was written meanwhile. Writers wait for an instance that does not answer as long as it may trust its memory, so
 * nothing is trusted from then on (a lease, as Gray and Cheriton have it).
 */
export const PROOF_LIFE_MS = 2000;

export interface TrustDeps {
  now: () => number;
  lostMaxAgeMs: number;
  steadyNow?: () => number;
}

export interface Trust {
  /** Every message from before this moment of the steady clock was heard. */
  proved: (at: number) => void;
  redisIs: (state: 'up' | 'lost') => void;
  /** Entries from before this moment (ms) may have missed an invalidation; 0: none has. */
  since: () => number;
}

/** Before Redis is there for the first time nothing is heard; what it holds then is as good as ever. */
export function createTrust({ now, lostMaxAgeMs, steadyNow = () => performance.now() }: TrustDeps): Trust {
  let provedAt = -Infinity;
  let trustedFrom = Infinity;
  let isUp = false;
  let hasBeenLost = false;
  const isSilent = (): boolean => isUp && steadyNow() - provedAt >= PROOF_LIFE_MS;
  return {
    proved(at) {
      provedAt = at;
    },
    redisIs(state) {
      isUp = state === 'up';
      if (!isUp) hasBeenLost = true;
      trustedFrom = isUp ? now() + (hasBeenLost ? OTHERS_RETURN_MS : 0) : Infinity;
    },
    since() {
      if (isSilent()) return now();
      return now() >= trustedFrom ? 0 : now() - lostMaxAgeMs;
    },
  };
}
