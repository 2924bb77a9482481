// Since when an entry can be trusted, by what is known of Redis.

/**
 * Whoever wrote while Redis was away says so when Redis is found again; not everybody finds it at the
 * same moment (a new try each second, 2 s to connect, a heartbeat of 1 s). Until all have said it, Redis may
 * hold what is over.
 */
const OTHERS_RETURN_MS = 5000;

/**
 * Every second it is proved that messages are heard. Without that for so long, by a clock that nobody sets, this
 * process may have stood still (suspended, or stopped by a signal): what is asked then it may read before what was
 * written meanwhile.
 */
const SILENT_MS = 3000;

export interface TrustDeps {
  now: () => number;
  lostMaxAgeMs: number;
  steadyNow?: () => number;
}

export interface Trust {
  /** Every message from before was heard. */
  proved: () => void;
  redisIs: (state: 'up' | 'lost') => void;
  /** Entries from before this moment (ms) may have missed an invalidation; 0: none has. */
  since: () => number;
}

/** Before Redis is there for the first time nothing is heard; what it holds then is as good as ever. */
export function createTrust({ now, lostMaxAgeMs, steadyNow = () => performance.now() }: TrustDeps): Trust {
  let provedAt = -Infinity;
  let trustedFrom = Infinity;
  let hasBeenLost = false;
  const isHeard = (): boolean => steadyNow() - provedAt < SILENT_MS;
  return {
    proved() {
      provedAt = steadyNow();
    },
    redisIs(state) {
      if (state === 'lost') hasBeenLost = true;
      trustedFrom = state === 'lost' ? Infinity : now() + (hasBeenLost ? OTHERS_RETURN_MS : 0);
    },
    since: () => (now() >= trustedFrom && isHeard() ? 0 : now() - lostMaxAgeMs),
  };
}
