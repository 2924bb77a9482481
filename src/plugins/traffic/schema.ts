// Configuration keys for traffic: rules for requests, and limits for networks that enumerate handles.
import { z } from 'zod';
import { readNetwork } from '../../config/addresses.js';
import { fixed, flag, items, mappings, reloadable, section, text, wholeNumber } from '../../config/fields.js';
import { CLASSES } from '../../upstream/caller.js';

const INTERFACES = ['record', 'v2', 'redirect', 'list', 'native'] as const;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS'] as const;
/** Token bucket keys: requests with the same key share a bucket. */
const LIMIT_KEYS = ['address', 'network', 'rule'] as const;

const oneWord = <const T extends readonly string[]>(words: T) =>
  z.enum(words, { error: `give one of ${words.join(', ')}` });

const wordsOf = <const T extends readonly string[]>(words: T) =>
  items({
    allowed: words.join(', '),
    read: (item): T[number] | undefined => words.find((word) => word === item),
  }).optional();

/** Parses an address or CIDR network. Unlike `http.trustedProxies`, it rejects named networks. */
const readCidr = (item: string): string | undefined =>
  /^[\d.:a-f/]+$/i.test(item) ? readNetwork(item) : undefined;

const pattern = (item: string): string | undefined => (item === '' ? undefined : item);

const match = section({
  network: items({ allowed: 'IP addresses and networks such as 192.0.2.0/24', read: readCidr }).optional(),
  userAgent: items({ allowed: 'texts with * for any part, such as *GPTBot*', read: pattern }).optional(),
  method: wordsOf(METHODS),
  interface: wordsOf(INTERFACES),
  prefix: items({
    allowed: 'prefixes such as "21.T11998", or "21.T11998.*" for those derived from it, in quotes',
    read: (item) => (/^[^\s/*]+(?:\.\*)?$/.test(item) ? item : undefined),
  }).optional(),
  handle: items({ allowed: 'handles with * for any part, such as 21.T11998/*', read: pattern }).optional(),
  reads: oneWord(['hits', 'misses']).optional(),
  credentials: flag(false).unwrap().optional(),
});

const requests = wholeNumber({ min: 1, max: 100_000_000, byDefault: 1 }).unwrap().optional();

const limit = z
  .strictObject({
    perSecond: requests,
    perMinute: requests,
    burst: requests,
    by: oneWord(LIMIT_KEYS).default('address'),
  })
  .refine(({ perSecond, perMinute }) => (perSecond === undefined) !== (perMinute === undefined), {
    error: 'give either perSecond or perMinute',
  });

const rule = z.strictObject({
  name: text({ allowed: 'a name of 1 to 64 printable ASCII characters', pattern: /^[\x20-\x7e]{1,64}$/ }),
  match,
  class: oneWord(CLASSES).optional(),
  limit: limit.optional(),
  answer: z
    .preprocess(Number, z.union([z.literal(429), z.literal(403)], { error: 'give 429 or 403' }))
    .optional(),
  log: flag(false),
  shadow: flag(false),
  robot: flag(false),
});

const enumeration = section({
  // Clients of real records miss a few names; a network that guesses misses nearly all.
  notFoundRatio: fixed(0.9),
  perMinute: wholeNumber({ min: 0, max: 100_000_000, byDefault: 0 }).describe(
    'Maximum misses per minute of one network (IPv4 /24, IPv6 /56), if most are for missing handles, or if the network causes most misses while a Handle server is under pressure; above it, the network\'s misses get 429. `0` limits no network. See "Networks that enumerate handles".',
  ),
  // A limited network is measured again after this time (ms).
  forMs: fixed(10 * 60_000),
});

export type TrafficRule = z.output<typeof rule>;
export type InterfaceName = (typeof INTERFACES)[number];

const hasUniqueNames = (rules: readonly TrafficRule[]): boolean =>
  new Set(rules.map(({ name }) => name)).size === rules.length;

export const traffic = reloadable(
  section({
    rules: mappings(rule, {
      isValid: hasUniqueNames,
      error: 'give each rule a unique name',
    }).describe(
      'Rules for requests; the first match decides. Each has a `name`, conditions (`match`: `network`, `userAgent`, `method`, `interface`, `prefix`, `handle`, `reads`, `credentials`) and actions (`class`, `limit`, `answer`, `log`, `shadow`, `robot`). See "Traffic rules".',
    ),
    enumeration,
  }),
);
