// Generates random requests for records and redirects, and the Handle server's responses.
import fc from 'fast-check';
import { value } from './leads.js';
import { type Answer, notFound, recordOf, urlValue } from './upstream.js';

const SUFFIXES = ['abc', 'ABC', '%61bc', 'short', 'gone', 'empty', 'long', 'refused', 'failing', 'no%zz', ''];
const QUERIES = [
  '',
  '?index=1',
  '?index=2',
  '?type=URL',
  '?type=url.',
  '?pretty',
  '?callback=cb',
  '?callback=cb&pretty',
  '?index=x',
  '?auth',
  '?',
];
const HEADERS = [
  [],
  ['Accept-Encoding: gzip'],
  ['accept-encoding: GZIP;q=0.5, identity;q=0.1'],
  ['Accept-Encoding: gzip;q=0'],
  ['If-None-Match: *'],
  ['If-None-Match: "nope"'],
  ['Connection: close'],
  ['Accept: text/html', 'User-Agent: x'],
];

/** Headers from cross-origin browsers and from proxies, and invalid headers. */
const ORIGINS_AND_PROXIES = [
  ['Origin: https://app.example.org'],
  ['Origin: https://app.example.org', 'Accept-Encoding: gzip'],
  ['Origin: https://app.example.org', 'If-None-Match: *'],
  ['ORIGIN: null', 'Via: 1.1 Caddy'],
  ['Via: 1.1 Caddy', 'X-Forwarded-For: 192.0.2.1', 'Accept-Encoding: gzip'],
  ['Via: 1.0 fred, 1.1 p.example.net (Apache/1.1)', 'via: 2 vegur', 'If-None-Match: *'],
  ['Via: 1.1 handle-resolver-proxy'],
  ['Via:'],
  ['Origin:'],
  ['Origin: https://one.example', 'Origin: https://other.example'],
  ['Origin: https://one.example', 'origin:'],
  ['Origin: a\tb  c \t'],
  ['Origin: https://b\xfccher.example/\x80\xff'],
  ['Origin: https://a.example\x01Set-Cookie: a=b'],
  ['Origin: https://a.example\x7f'],
  ['Origin: https://a.example\r Set-Cookie: a=b'],
  ['Origin: https://a.example%0d%0aSet-Cookie: a=b, \\r\\n'],
  [`Origin: https://${'a'.repeat(4000)}.example`],
  [`Via: 1.1 ${'a'.repeat(4000)}`],
  ['Upgrade: h2c', 'Origin: https://app.example.org'],
];

function answerOf(target: string): Answer {
  const handle = decodeURIComponent(target.slice('/api/handles/'.length).split('?')[0] ?? '');
  const suffix = handle.split('/')[1] ?? '';
  if (suffix === 'gone') return notFound(handle);
  if (suffix === 'empty') return { status: 200, body: { responseCode: 200, values: [], handle } };
  if (suffix === 'refused') return { status: 403, body: { responseCode: 400, message: 'no', handle } };
  if (suffix === 'failing') return { status: 500, body: { responseCode: 2, message: 'broken', handle } };
  if (suffix === 'short') return recordOf([urlValue('https://example.org/short', 3)], handle);
  if (suffix === 'long') return recordOf([urlValue(`https://example.org/${'ä'.repeat(2000)}`)], handle);
  return recordOf(undefined, handle);
}

interface Corner {
  prefixes: string[];
  suffixes: string[];
  queries: string[];
  headers: string[][];
}

/** The parts of a run's requests, and the Handle server's responses. */
interface World {
  name: string;
  corner: Corner;
  answerOf: (target: string, version: number) => Answer;
}

export const records: World = {
  name: 'records',
  corner: {
    prefixes: ['/api/handles/21.T11998/'],
    suffixes: SUFFIXES,
    queries: QUERIES,
    headers: [...HEADERS, ...HEADERS, ...ORIGINS_AND_PROXIES],
  },
  answerOf,
};

const place = (id: string, more = ''): string =>
  `<location id="${id}" href="https://${id}.example.org/" ${more}/>`;
const located = (...places: string[]): unknown[] => [
  value(1, '10320/loc', `<locations>${places.join('')}</locations>`),
  value(2, 'URL', 'https://example.org/plain'),
];

/** Returns records under 21.T11998 by suffix; each version has different records. */
const redirecting = (version: number): Record<string, unknown[] | undefined> => ({
  ABC: [
    urlValue(`https://example.org/${version}?x=1&y=<2>`),
    value(2, 'URL', 'https://example.org/second', 50),
  ],
  SHORT: [urlValue('https://example.org/short', 3)],
  ALIAS: [value(1, 'HS_ALIAS', version % 2 === 0 ? '21.T11998/abc' : '21.T11998/short')],
  SCRIPT: [urlValue('javascript:alert(1)')],
  TEXT: [value(1, 'DESC', 'no address')],
  LOC: located(
    place('a', 'weight="0"'),
    place('b', `http_sc="${version % 2 === 0 ? 301 : 307}"`),
    place('us', 'country="us" weight="0"'),
  ),
  DRAWN: located(place('a'), place('b')),
  CONNEG: located(place('a'), place('json', 'http_role="conneg" media_type="application/json"')),
});

export const redirects: World = {
  name: 'redirects',
  corner: {
    prefixes: ['/21.T11998/', '/21.T11998/', '/hdl:21.t11998%2F', '/api/handles/21.T11998/'],
    suffixes: [
      'abc',
      'ABC',
      '%61bc',
      'short',
      'alias',
      'script',
      'text',
      'loc',
      'drawn',
      'conneg',
      'gone',
      'no%zz',
    ],
    queries: [
      '',
      '',
      '',
      '?index=2',
      '?urlappend=/%C3%A4',
      '?urlappend=.evil.org',
      '?noredirect',
      '?locatt=id:a',
    ].concat(['?country=us', '?action=api', '?action=showurls', '?ignore_aliases', '?auth', '?']),
    headers: [
      [],
      ['Accept: text/html', 'Accept-Encoding: gzip'],
      ['Accept: application/json'],
      ['If-None-Match: *'],
      ...ORIGINS_AND_PROXIES,
      ['Authorization: Basic eDp5'],
      ['Content-Type: application/x-www-form-urlencoded', 'Content-Length: 0'],
    ],
  },
  answerOf(target, version) {
    const handle = decodeURIComponent(target.slice('/api/handles/'.length).split('?')[0] ?? '');
    const values = redirecting(version)[handle.split('/')[1]?.toUpperCase() ?? ''];
    return values === undefined ? notFound(handle) : recordOf(values, handle);
  },
};

/**
 * Generates requests for a few targets, each read often enough to be cached, interleaved with pauses and
 * upstream changes.
 */
export const stepsIn = ({ prefixes, suffixes, queries, headers }: Corner) =>
  fc
    .array(
      fc
        .tuple(fc.constantFrom(...prefixes), fc.constantFrom(...suffixes), fc.constantFrom(...queries))
        .map((pieces) => pieces.join('')),
      { minLength: 2, maxLength: 5 },
    )
    .chain((targets) => fc.array(stepAbout(targets, headers), { minLength: 30, maxLength: 60 }));

const stepAbout = (targets: string[], headers: string[][]) =>
  fc.oneof(
    {
      weight: 20,
      arbitrary: fc.record({
        kind: fc.constant('ask' as const),
        method: fc.constantFrom('GET', 'GET', 'GET', 'HEAD'),
        target: fc.constantFrom(...targets),
        headers: fc.constantFrom(...headers),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ kind: 'change' as const }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('pass' as const),
        ms: fc.constantFrom(1, 999, 1000, 2500, 3_240_001, 3_600_000),
      }),
    },
  );
