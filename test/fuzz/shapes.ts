// Handle server responses with well-formed JSON and invalid values.
import { type Random } from '../support/random.js';
import { below, pick } from './mutate.js';

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** JSON texts that JSON.stringify cannot produce, by placeholder. */
const RAW = {
  '"<1e999>"': '1e999',
  '"<-0>"': '-0',
  '"<deep>"': '['.repeat(6000) + ']'.repeat(6000),
};

const string = (value: string): Json => ({ format: 'string', value });

/** Returns a value of each kind that the proxy interprets. */
const valuesOf = (handle: string): Json[] => [
  { index: 1, type: 'URL', data: string(`https://example.org/${handle}`), ttl: 86400, timestamp: STAMP },
  {
    index: 2,
    type: '10320/LOC',
    data: string('<locations><location href="https://example.org/" weight="1"/></locations>'),
    ttl: '2030-01-01T00:00:00Z',
  },
  { index: 3, type: 'HS_ALIAS', data: string('21.T11998/alias'), ttl: 60, permissions: '1110' },
  { index: 4, type: 'EMAIL', data: string('a@example.org'), references: [{ handle: '21.T1/a', index: 1 }] },
  { index: 5, type: 'DESC', data: { format: 'base64', value: 'AAEC' }, permissions: '0110' },
  {
    index: 100,
    type: 'HS_ADMIN',
    data: { format: 'admin', value: { handle: '0.NA/21.T1', index: 200, permissions: '011111110011' } },
  },
  { index: 200, type: 'HS_VLIST', data: { format: 'vlist', value: [{ handle: '21.T1/a', index: 300 }] } },
  {
    index: 300,
    type: 'HS_PUBKEY',
    data: { format: 'key', value: { kty: 'RSA', n: 'AQAB', e: 'AQAB' } },
  },
  {
    index: 400,
    type: 'HS_SITE',
    data: {
      format: 'site',
      value: {
        version: 1,
        protocolVersion: '2.10',
        serialNumber: 1,
        primarySite: true,
        multiPrimary: false,
        attributes: [{ name: 'desc', value: 'x' }],
        servers: [
          {
            serverId: 1,
            address: '127.0.0.1',
            publicKey: { format: 'base64', value: 'AAEC' },
            interfaces: [{ query: true, admin: false, protocol: 'HTTP', port: 8000 }],
          },
        ],
      },
    },
  },
];

const STAMP = '2026-11-21T09:00:00Z';

const nested = (levels: number): Json => {
  let value: Json = [];
  for (let level = 1; level < levels; level++) value = [value];
  return value;
};

/** Values of unexpected types, and hostile texts. */
const ODD: readonly (() => Json)[] = [
  ...[null, true, false, 0, -1, 1.5, 2 ** 31, -(2 ** 53), 1e300, '<1e999>', '<-0>'].map(
    (value) => () => value,
  ),
  ...['', ' ', '\0', '\u0007\u001b[2J', '\ud800', '\u2028', '\ufffd', '\r\nSet-Cookie: a=b'].map(
    (text) => () => text,
  ),
  ...[
    '<script>',
    '&amp;',
    '__proto__',
    'constructor',
    'toString',
    '0',
    'http://[',
    'mailto:',
    'javascript:alert(1)',
    'é',
  ].map((text) => () => text),
  ...['2026-99-99T99:99:99Z', '+275760-09-13T00:00:00.001Z', '-1', 'x'.repeat(5000)].map(
    (text) => () => text,
  ),
  ...['<locations>', '<locations><location href="{hdl}"/></locations>', '21.T11998/'].map(
    (text) => () => text,
  ),
  () => [],
  () => [null],
  () => [[]],
  () => ({}),
  () => ({ format: 'string' }),
  () => ({ format: 'admin', value: null }),
  () => ({ format: 'vlist', value: [{ handle: {}, index: [] }, null, 7] }),
  () => ({ format: 'site', value: { servers: {} } }),
  () => ({ toString: 1, valueOf: 2, toJSON: 3, then: 4, constructor: 5, length: 6 }),
  () => JSON.parse('{"__proto__":{"permissions":"0000","polluted":true}}') as Json,
  () => ({ length: 1e9, 0: 'x' }),
  () => Array<Json>(3000).fill(0),
  () => nested(50),
  () => '<deep>',
];

/** Returns a record or an error with members replaced, removed, added or duplicated. */
export function mutatedRecord(random: Random, handle: string): { status: string; body: string } {
  if (random() < 0.1) {
    const refusal: Json = { responseCode: 301, message: 'x', handle, values: valuesOf(handle) };
    return { status: '400 Bad Request', body: mutatedJson(random, refusal) };
  }
  return {
    status: '200 OK',
    body: mutatedJson(random, { responseCode: 1, handle, values: someOf(random, handle) }),
  };
}

/** Returns a list of handles, mutated like the records. */
export function mutatedList(random: Random, prefix: string, handles: string[]): string {
  const count = String(handles.length);
  return mutatedJson(random, { responseCode: 1, prefix, totalCount: count, page: 0, pageSize: 10, handles });
}

/** Returns some of the values, rarely with the alias, which would be followed. */
const someOf = (random: Random, handle: string): Json[] =>
  valuesOf(handle).filter((value) => random() < ((value as { index: number }).index === 3 ? 0.1 : 0.7));

const MOST_CHANGES = 4;

function mutatedJson(random: Random, root: Json): string {
  const changes = below(random, MOST_CHANGES + 1);
  for (let count = 0; count < changes; count++) mutateOnce(random, root);
  let text = JSON.stringify(root);
  for (const [marked, raw] of Object.entries(RAW)) text = text.replaceAll(marked, raw);
  return text;
}

type Parent = Record<string, Json>;

/** Changes one member of a random object or array, in at least 10 % of cases of the root. */
function mutateOnce(random: Random, root: Json): void {
  const parents = parentsIn(root);
  const parent = random() < 0.1 ? (root as Parent) : pick(random, parents);
  const name = pick(random, Object.keys(parent));
  switch (below(random, 6)) {
    case 0:
      if (Array.isArray(parent)) parent.splice(Number(name), 1);
      else Reflect.deleteProperty(parent, name);
      break;
    case 1:
      put(
        parent,
        pick(random, ['toString', 'valueOf', 'then', 'toJSON', 'length', '__proto__']),
        odd(random),
      );
      break;
    case 2:
      put(parent, name, parent[pick(random, Object.keys(parent))] ?? null);
      break;
    default:
      put(parent, name, odd(random));
  }
}

const odd = (random: Random): Json => pick(random, ODD)();

/** Sets `__proto__` as an ordinary member. Skips non-index members of arrays, which JSON omits. */
function put(parent: Parent, name: string, value: Json): void {
  if (Array.isArray(parent) && !/^\d+$/.test(name)) return;
  Object.defineProperty(parent, name, { value, enumerable: true, configurable: true, writable: true });
}

function parentsIn(value: Json, depth = 0): Parent[] {
  if (typeof value !== 'object' || value === null || depth > 8) return [];
  const inner = Object.values(value).flatMap((one) => parentsIn(one, depth + 1));
  return Object.keys(value).length === 0 ? inner : [value as Parent, ...inner];
}
