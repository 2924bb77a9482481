// The values of labels of metrics, and the usual ones of requests.

export type Labels = Readonly<Record<string, string>>;

/** The values of the labels that have the same ones in every deployment. */
export const VALUES = {
  family: ['record', 'v2', 'redirect', 'native-tunnel', 'native-tcp', 'native-udp'],
  store: ['found', 'notFound'],
  reason: ['error', 'late', 'resting'],
  source: ['snapshot', 'seed', 'import'],
  kind: ['read', 'passed'],
  dropReason: ['total', 'network', 'unread'],
  udpReason: ['rate', 'size', 'busy'],
  limitReason: ['unknown-names', 'most-misses'],
  ruleResult: ['matched', 'limited', 'shadowed'],
  command: ['connect', 'heartbeat', 'get', 'set', 'open', 'lock', 'count', 'limit', 'leave', 'claim'],
} as const;

export type LabelValue<Name extends keyof typeof VALUES> = (typeof VALUES)[Name][number];

type Statuses = Readonly<Record<string, readonly number[]>>;

const HTTP_FAILURES: Statuses = {
  refused: [401, 403],
  invalid: [400, 404, 405, 429],
  error: [500, 502, 503, 504],
};

/** Response codes: these interfaces have no HTTP status. */
const NATIVE: Statuses = {
  ...{ hit: [1, 100, 200], miss: [1, 100, 200], stale: [1], authoritative: [1, 100] },
  ...{ bypass: [1, 402], local: [1, 100], refused: [2, 301, 302, 303], invalid: [2, 4, 5], error: [2] },
};

/** The usual statuses of each result. Further ones appear with their first response. */
const USUAL: Readonly<Record<LabelValue<'family'>, Statuses>> = {
  record: {
    ...{ hit: [200, 304, 404], miss: [200, 404], stale: [200], authoritative: [200, 404] },
    ...{ bypass: [200], write: [200, 201] },
    ...HTTP_FAILURES,
  },
  v2: { hit: [200], miss: [200], stale: [200], bypass: [200], write: [201, 204], ...HTTP_FAILURES },
  redirect: {
    ...{ hit: [301, 302, 404], miss: [301, 302, 404], stale: [302], authoritative: [302, 404] },
    ...HTTP_FAILURES,
  },
  'native-tunnel': { hit: [200], miss: [200], stale: [200], authoritative: [200], ...HTTP_FAILURES },
  'native-tcp': NATIVE,
  'native-udp': NATIVE,
};

export const USUAL_REQUESTS: Labels[] = VALUES.family.flatMap((family) =>
  Object.entries(USUAL[family]).flatMap(([result, statuses]) =>
    statuses.map((status) => ({ family, result, status: String(status) })),
  ),
);
