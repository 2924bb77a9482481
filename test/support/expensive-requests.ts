// The most expensive known requests, for any input size. test/attack counts their work, and test/bench sends
// them during hits. test/redirect/included-records covers includes.
import { DEMO_PASSWORD, DEMO_PREFIX, textValue } from '../../src/dev-server/seed.js';
import type { Question } from './ask.js';
import { nativeRequest } from './native-messages.js';

type Values = Record<string, unknown>[];

export interface ExpensiveRequest {
  /** Returns a record's values for this size. */
  record: (size: number) => Values;
  /** Returns a request; `number` makes it unique, so that no prepared response serves it. */
  request: (size: number, number: number) => [target: string, question?: Question];
  /** Sizes to compare with each other, by default 500 and 1,000. */
  sizes?: readonly [number, number];
  /**
   * Largest size, by default 10,000. The proxy's limits are 1 MiB for records, 20,000 locations for lists,
   * 1,000 handles for batches, and 16 KiB for headers.
   */
  largest?: number;
  /** Returns the number of record reads, by default 1. */
  reads?: (size: number) => number;
  /** Maximum blocks per event-loop turn at the counted size, for requests with an unsliced part. */
  turnBlocks?: number;
  /** Size to count if the largest takes minutes. */
  counted?: number;
}

/**
 * Statuses of processed requests: a record, a redirect, a missing handle, a failed condition. Rejected
 * requests cost nothing.
 */
export const ANSWERED: readonly number[] = [200, 302, 404, 412];

export const NAME = `${DEMO_PREFIX}/cost`;

const locations = (count: number, attributes: (at: number) => string, settings = ''): Values => {
  const all = Array.from({ length: count }, (_, at) => `<location ${attributes(at)}/>`);
  return [textValue(1, '10320/LOC', `<locations ${settings}>${all.join('')}</locations>`)];
};
const href = (at: number): string => `href="https://example.org/${at}"`;
const values = (count: number): Values =>
  Array.from({ length: count }, (_, at) => textValue(at + 1, `TYPE.${at}`, `https://example.org/${at}`));
const references = (count: number): { handle: string; index: number }[] =>
  Array.from({ length: count }, (_, at) => ({ handle: `21.T11998/${at}`, index: at }));
const repeat = (count: number, text: (at: number) => string, between = ''): string =>
  Array.from({ length: count }, (_, at) => text(at)).join(between);

const REDIRECT =
  (query = '') =>
  (_size: number, number: number): [string] => [`/${NAME}?n=${number}&${query}`];
const RECORD =
  (query = '') =>
  (_size: number, number: number): [string] => [`/api/handles/${NAME}?n=${number}&${query}`];
const WITH =
  (headers: (size: number) => Record<string, string>, target = `/api/handles/${NAME}`) =>
  (size: number, number: number): [string, Question] => [`${target}?n=${number}`, { headers: headers(size) }];
const POSTED =
  (body: (size: number) => unknown) =>
  (size: number): [string, Question] => [
    '/api/resolve',
    { method: 'POST', body: JSON.stringify(body(size)) },
  ];
const NATIVE = { Accept: 'application/x-hdl-message', 'Content-Type': 'application/x-hdl-message' };
const TUNNELLED =
  (options: (size: number) => Parameters<typeof nativeRequest>[1]) =>
  (size: number): [string, Question] => [
    '/',
    { method: 'POST', headers: NATIVE, body: nativeRequest(NAME, options(size)) },
  ];
const LOGIN = {
  Authorization: `Basic ${Buffer.from(`300%3A${DEMO_PREFIX}/USER01:${DEMO_PASSWORD}`).toString('base64')}`,
};

const LISTS: Record<string, ExpensiveRequest> = {
  'weights of hexadecimal digits': {
    record: (size) => locations(3, (at) => `${href(at)} weight="0x${'d'.repeat(size)}"`),
    request: REDIRECT(),
    sizes: [20_000, 40_000],
    largest: 300_000,
  },
  'scores of decimal digits': {
    record: (size) => locations(3, (at) => `${href(at)} score="${'1'.repeat(size)}x"`),
    request: REDIRECT(),
    sizes: [20_000, 40_000],
    largest: 300_000,
  },
  'locations with weights': {
    record: (size) => locations(size, (at) => `${href(at)} weight="${at}"`),
    request: REDIRECT(),
    largest: 20_000,
  },
  'locations with scores and countries': {
    record: (size) => locations(size, (at) => `${href(at)} score="${at}" country="de"`),
    request: REDIRECT(),
    largest: 16_000,
  },
  'address ranges': {
    record: (size) =>
      locations(
        5,
        (at) => `${href(at)} addresses="${repeat(size / 5, (n) => `10.${n % 250}.${at}.0/24`, ',')}"`,
      ),
    request: REDIRECT(),
    largest: 60_000,
  },
  anchors: {
    record: (size) => locations(size, (at) => `${href(at)} rel="item" id="i${at}" anchor-id="i${size - at}"`),
    request: REDIRECT(),
  },
  'templates in showurls': {
    record: (size) => locations(size, () => 'href_template="https://example.org/{hdl}"'),
    request: REDIRECT('action=showurls'),
    largest: 20_000,
  },
  'one template of placeholders': {
    record: (size) => locations(1, () => `href_template="https://example.org/${'{hdl}'.repeat(size)}"`),
    request: REDIRECT('action=showurls'),
    largest: 200_000,
  },
  'locations chosen by Accept': {
    record: (size) => locations(size, (at) => `${href(at)} http_role="conneg" type="a/${at}"`),
    request: WITH(() => ({ Accept: repeat(100, (at) => `x/${at}`, ',') }), `/${NAME}`),
  },
  'locations chosen by Accept-Language': {
    record: (size) => locations(size, (at) => `${href(at)} http_role="conneg" language="x-${at}"`),
    request: WITH(() => ({ 'Accept-Language': repeat(1000, (at) => `y-${at}`, ',') }), `/${NAME}`),
  },
  'locations of which hundreds of attributes are asked': {
    record: (size) => locations(size, href),
    request: REDIRECT(repeat(200, (at) => `locatt=a${at}:b`, '&')),
    largest: 20_000,
  },
  'attributes of one location': {
    record: (size) => locations(1, () => `${href(1)} ${repeat(size, (at) => `a${at}="b"`, ' ')}`),
    request: REDIRECT(),
    largest: 80_000,
    // The limits of JSON are checked in one piece, and each escaped quote ends a search in its text.
    turnBlocks: 1_500_000,
  },
  'chain of selectors': {
    record: (size) => locations(10, href, `chooseby="${'country,'.repeat(size)}"`),
    request: REDIRECT(),
    largest: 100_000,
  },
  'entities in a list': {
    record: (size) => locations(1, () => `href="https://example.org/${'&amp;'.repeat(size)}"`),
    request: REDIRECT(),
    largest: 200_000,
  },
  'tags that do not end': {
    record: (size) => [textValue(1, '10320/LOC', `<locations>${'<a '.repeat(size)}`)],
    request: REDIRECT(),
    largest: 300_000,
    turnBlocks: 3_000_000,
  },
  'headers of a record': {
    record: (size) => [
      textValue(1, 'URL', 'https://example.org/'),
      textValue(
        2,
        '10320/headers',
        repeat(size, (at) => `Link: <https://example.org/${at}>; rel="item"\n`),
      ),
    ],
    request: REDIRECT(),
    largest: 20_000,
  },
};

/** Returns a record with a target and this Link header. */
const linked = (link: string, target = 'https://example.org/'): Values => [
  textValue(1, 'URL', target),
  textValue(2, '10320/headers', `Link: ${link}`),
];

const LINKSETS: Record<string, ExpensiveRequest> = {
  'link set of a link of relations and parameters': {
    record: (size) =>
      linked(
        `<>;rel="${repeat(size, (at) => at.toString(36), ' ')}"${repeat(size, (at) => `;a${at.toString(36)}`)}`,
      ),
    request: REDIRECT('action=linkset&format=json'),
    sizes: [400, 800],
    largest: 1000,
  },
  'link set of many links with a long target': {
    record: (size) => linked('<>;rel=a,'.repeat(size), `https://example.org/${'x'.repeat(6000)}`),
    request: REDIRECT('action=linkset&format=text'),
    sizes: [400, 800],
    largest: 850,
  },
};

const PAGES: Record<string, ExpensiveRequest> = {
  'redirect of a record with many values': {
    record: (size) => [textValue(size + 1, 'URL', 'https://example.org/'), ...values(size)],
    request: REDIRECT(),
  },
  'record page of many values': { record: values, request: REDIRECT('noredirect') },
  'record page of one long value': {
    record: (size) => [textValue(1, 'URL', 'x'.repeat(100 * size))],
    request: REDIRECT('noredirect'),
  },
  'record page of markup': {
    record: (size) => [textValue(1, 'DESC', '<a href="&quot;">'.repeat(size))],
    request: REDIRECT('noredirect'),
    largest: 60_000,
  },
  'record page of a list of members': {
    record: (size) => [{ index: 1, type: 'HS_VLIST', data: { format: 'vlist', value: references(size) } }],
    request: REDIRECT('noredirect'),
    largest: 20_000,
    turnBlocks: 3_000_000,
  },
  'page of a handle of percent signs that does not exist': {
    record: () => values(3),
    request: (size, number) => [`/21.T11998/${'%26'.repeat(size)}${number}`],
    sizes: [300, 600],
    largest: 600,
  },
};

const READS: Record<string, ExpensiveRequest> = {
  'selection by index': { record: values, request: RECORD('index=7') },
  'selection by five hundred indexes': {
    record: values,
    request: RECORD(repeat(500, (at) => `index=${2 * at}`, '&')),
  },
  'selection by ninety families of types': {
    record: values,
    request: RECORD(repeat(90, (at) => `type=${'T'.repeat(at + 1)}.`, '&')),
  },
  'families of types with a thousand dots': {
    record: (size) => Array.from({ length: 20 }, (_, at) => textValue(at + 1, `a${'.'.repeat(size)}`, 'x')),
    request: RECORD(`type=${'a.'.repeat(50)}`),
    sizes: [1000, 2000],
    largest: 50_000,
    turnBlocks: 1_500_000,
  },
  'indented record': { record: values, request: RECORD('pretty'), turnBlocks: 2_500_000 },
  'record of backslashes': {
    record: (size) => [textValue(1, 'DESC', '\\"'.repeat(size))],
    request: RECORD('pretty&index=1'),
    largest: 250_000,
    turnBlocks: 7_000_000,
  },
  'authoritative read': { record: values, request: RECORD('auth=true'), turnBlocks: 4_000_000 },
  'private read': {
    record: values,
    request: RECORD('publicOnly=false'),
    largest: 14_500,
    turnBlocks: 6_000_000,
  },
  'read of ePIC v2': {
    record: values,
    request: (_size, number) => [`/api/v2/handles/${NAME}?n=${number}`, { headers: LOGIN }],
    largest: 14_500,
    turnBlocks: 3_500_000,
  },
};

const WRITES: Record<string, ExpensiveRequest> = {
  'write of ePIC v2 of two thousand values': {
    record: () => values(3),
    request: (size) => [
      `/api/v2/handles/${NAME}`,
      {
        method: 'PUT',
        headers: { ...LOGIN, 'If-None-Match': '*', 'Content-Type': 'application/json' },
        body: JSON.stringify(
          Array.from({ length: size }, (_, at) => ({ type: `TYPE.${at}`, parsed_data: 'x'.repeat(400) })),
        ),
      },
    ],
    largest: 2000,
    turnBlocks: 700_000,
  },
  'conditional write of ePIC v2': {
    record: values,
    request: () => [
      `/api/v2/handles/${NAME}`,
      {
        method: 'PUT',
        headers: { ...LOGIN, 'If-Match': '"none"', 'Content-Type': 'application/json' },
        body: '[{"type":"URL","parsed_data":"https://example.org/"}]',
      },
    ],
    turnBlocks: 4_000_000,
  },
  'conditional write of a record': {
    record: values,
    request: () => [
      `/api/handles/${NAME}`,
      {
        method: 'PUT',
        headers: { ...LOGIN, 'If-Match': '"none"', 'Content-Type': 'application/json' },
        body: '[]',
      },
    ],
    // With the login, and once more for all readers, because the condition fails.
    reads: () => 2,
    turnBlocks: 4_000_000,
  },
};

const BATCHES: Record<string, ExpensiveRequest> = {
  'batch that selects': {
    record: () => values(1000),
    request: POSTED((size) => ({ handles: Array<string>(size).fill(NAME), index: 1 })),
    sizes: [10, 20],
    largest: 1000,
    counted: 30,
    reads: (size) => size,
  },
  'batch of small records': {
    record: () => values(3),
    request: POSTED((size) => ({ handles: Array<string>(size).fill(NAME) })),
    sizes: [500, 1000],
    largest: 1000,
  },
  'batch of names that are no handles': {
    record: () => values(3),
    request: POSTED((size) => ({ handles: Array<string>(size).fill('x'.repeat(1000)) })),
    sizes: [100, 200],
    largest: 1000,
  },
  'batch of one long name of percent signs': {
    record: () => values(3),
    request: POSTED((size) => ({ handles: ['%'.repeat(size)] })),
    sizes: [100_000, 200_000],
    largest: 1_000_000,
    turnBlocks: 100_000,
  },
  'tunnelled message': {
    record: values,
    request: TUNNELLED(() => ({ indexes: [7] })),
    turnBlocks: 2_000_000,
  },
  'tunnelled message with many types': {
    record: () => values(1000),
    request: TUNNELLED((size) => ({ types: Array.from({ length: size }, (_, at) => `T${at}.`) })),
    sizes: [1000, 2000],
    largest: 2000,
  },
};

const HEADS: Record<string, ExpensiveRequest> = {
  'path of percent signs': {
    record: () => values(3),
    request: (size, number) => [`/api/handles/21.T11998/${'%41'.repeat(size)}${number}`],
    sizes: [500, 1000],
    largest: 1000,
  },
  'query of parameters': {
    record: () => values(3),
    request: (size, number) => [`/api/handles/${NAME}?n=${number}${'&a'.repeat(size)}`],
    sizes: [1000, 2000],
    largest: 3500,
  },
  'If-None-Match of many tags': {
    record: () => values(3),
    request: WITH((size) => ({ 'If-None-Match': '"x",'.repeat(size) + '"y"' })),
    sizes: [1000, 2000],
    largest: 3500,
  },
  'Accept-Encoding of many codings': {
    record: () => values(3),
    request: WITH((size) => ({ 'Accept-Encoding': 'x,'.repeat(size) + 'gzip' })),
    sizes: [2000, 4000],
    largest: 7000,
  },
  'X-Forwarded-For of many hops': {
    record: () => values(3),
    request: (size, number) => [
      `/api/handles/${NAME}?auth=true&n=${number}`,
      { headers: { 'X-Forwarded-For': '127.0.0.1,'.repeat(size) + '127.0.0.1' } },
    ],
    sizes: [600, 1200],
    largest: 1400,
  },
};

export const EXPENSIVE_REQUESTS: Readonly<Record<string, ExpensiveRequest>> = {
  ...LISTS,
  ...LINKSETS,
  ...PAGES,
  ...READS,
  ...WRITES,
  ...BATCHES,
  ...HEADS,
};

interface Sizes {
  small: number;
  large: number;
  largest: number;
  counted: number;
}

export function sizesOf({ sizes, largest = 10_000, counted = largest }: ExpensiveRequest): Sizes {
  const [small, large] = sizes ?? [500, 1000];
  return { small, large, largest, counted };
}
