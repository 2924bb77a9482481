// Requests that try to shift their end: many header fields, Connection lists, conflicting framing headers,
// trailers, expectations, bodies that look like requests. The target and the body of each contain a mark.
import { LAST } from './corpus.js';
import { markOf } from './marks.js';
import { type Random, randomFrom } from '../support/random.js';
import { below, mutate, pick } from './mutate.js';

export interface Sent {
  /** The mark in the target. */
  mark: string;
  /** The body as HTTP/1.1 parses it. */
  body: string;
  /** Whether its response closes the connection, because of too many header fields or an ignored upgrade. */
  isLast: boolean;
}

export interface Stream {
  connection: number;
  bytes: Buffer;
  requests: Sent[];
  /** Whether the end of every request is certain, without ambiguous framing or mutations. */
  isClean: boolean;
}

const MOST_REQUESTS = 12;
const MUTATED_STREAMS = 0.25;
/** Share of streams with ambiguous framing, whose first ambiguous request ends the connection. */
const AMBIGUOUS_STREAMS = 0.2;
const MOST_CHANGES = 3;

/**
 * Returns the number of responses to a clean stream: one per request, up to and including the request that
 * closes the connection.
 */
export function answersTo({ requests }: Stream): number {
  const last = requests.findIndex(({ isLast }) => isLast);
  return 1 + (last === -1 ? requests.length : last);
}

/** Returns the stream for this connection number. */
export function streamFor(connection: number, seed: number): Stream {
  const random = randomFrom(seed * 7_919 + connection);
  const isMutated = random() < MUTATED_STREAMS;
  const framings = random() < AMBIGUOUS_STREAMS ? [...CLEAR_FRAMINGS, twoFramings] : CLEAR_FRAMINGS;
  const made = Array.from({ length: 1 + below(random, MOST_REQUESTS) }, (_, at) =>
    makeRequest(random, { connection, at, framings }),
  );
  const parts = made.map(({ bytes }) =>
    isMutated && random() < 0.3 ? mutate(random, bytes, MOST_CHANGES) : bytes,
  );
  return {
    connection,
    bytes: Buffer.concat([...parts, LAST]),
    requests: made,
    isClean: !isMutated && made.every(({ isClear }) => isClear),
  };
}

type Framer = (text: string, random: Random) => Framing;

interface Place {
  connection: number;
  at: number;
  framings: readonly Framer[];
}

type Made = Sent & { bytes: Buffer; isClear: boolean };

function makeRequest(random: Random, place: Place): Made {
  const [mark, inside] = [markOf('m', place), markOf('i', place)];
  const way = pick(random, WAYS);
  const text = pick(random, BODIES)(inside);
  const { lines, wire, body, isClear } = pick(random, place.framings)(text, random);
  const fields = shuffled(random, [...lines, ...extras(random)]);
  const head = [`${way.replaceAll('MARK', mark)} HTTP/1.1`, 'Host: proxy.example', ...fields];
  const count = fields.join('\r\n').split('\r\n').length + 1;
  const isLast = count > 1000 || fields.includes('Upgrade: h2c');
  return {
    mark,
    body,
    isClear,
    isLast,
    bytes: Buffer.from(`${head.join('\r\n')}\r\n\r\n${wire}`, 'latin1'),
  };
}

/** Every route: record interface, forwarded paths, reverse lookup, ePIC v2, redirects. */
const WAYS = [
  'GET /api/handles/21.T11998/MARK',
  'HEAD /api/handles/21.T11998/MARK?auth=true',
  'GET /api/handles/21.T11998/MARK?publicOnly=false',
  'HEAD /api/handles/21.T11998/MARK?publicOnly=false',
  'PUT /api/handles/21.T11998/MARK?overwrite',
  'PUT http://proxy.example/api/handles/21.T11998/MARK',
  'POST /api/handles/21.T11998/MARK',
  'DELETE /api/handles/21.T11998/MARK',
  'DELETE /api/handles/21.T11998/MARK?index=1',
  'GET /api/handles?prefix=21.T11998&MARK',
  'POST /api/handles/?MARK',
  'POST /api/sessions?MARK',
  'GET /api/sessions/this?MARK',
  'PUT /api/sessions/this?MARK',
  'DELETE /api/sessions/this?MARK',
  'GET /api/site/MARK',
  'DELETE /api/prefixes/MARK',
  'POST /api/verifications/MARK',
  'GET /hrls/handles/MARK?URL=*',
  'HEAD /hrls/handles/MARK?URL=*',
  'GET /api/v2/handles/21.T11998/MARK',
  'PUT /api/v2/handles/21.T11998/MARK',
  'DELETE /api/v2/handles/21.T11998/MARK',
  'POST /api/v2/handles/21.T11998?prefix=MARK',
  'GET /api/v2/handles/21.T11998/?URL=MARK',
  'GET /21.T11998/MARK',
  'POST /21.T11998/MARK',
  'GET /21.T11998/MARK?noredirect',
];

const BODIES: ((inside: string) => string)[] = [
  (inside) => `DELETE /api/handles/21.T11998/${inside} HTTP/1.1\r\nHost: x\r\n\r\n`,
  (inside) => `GET /api/sessions/this?${inside} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`,
  (inside) => `\r\n\r\n0\r\n\r\nPUT /api/handles/21.T11998/${inside} HTTP/1.1\r\nX: `,
  (inside) => `[{"type":"URL","parsed_data":"https://example.org/${inside}"}]`,
];

interface Framing {
  lines: string[];
  wire: string;
  /** The body without its framing. */
  body: string;
  isClear: boolean;
}

/** Headers that frame a body, and lookalikes. */
const FRAMING_LINES: ((text: string) => string)[] = [
  (text) => `Content-Length: ${text.length}`,
  (text) => `content-length: ${text.length}`,
  (text) => `Content-Length: ${text.length}, ${text.length}`,
  (text) => `Content-Length: +${text.length}`,
  (text) => `Content-Length : ${text.length}`,
  () => 'Content-Length: 0',
  () => 'Content-Length: 5',
  () => 'Transfer-Encoding: chunked',
  () => 'transfer-encoding: Chunked',
  () => 'Transfer-Encoding: identity',
  () => 'Transfer-Encoding: gzip, chunked',
  () => 'Transfer-Encoding: chunked, chunked',
  () => 'Transfer-Encoding: xchunked',
  () => 'Transfer_Encoding: chunked',
  () => 'Content_Length: 3',
];

const withLength: Framer = (text) => ({
  lines: [`Content-Length: ${text.length}`],
  wire: text,
  body: text,
  isClear: true,
});

const CLEAR_FRAMINGS: readonly Framer[] = [
  () => ({ lines: [], wire: '', body: '', isClear: true }),
  withLength,
  inChunks,
];

const twoFramings: Framer = (text, random) => {
  const lines = [pick(random, FRAMING_LINES)(text), pick(random, FRAMING_LINES)(text)];
  const wire = random() < 0.5 ? text : inChunks(text, random).wire;
  return { lines, wire, body: text, isClear: false };
};

/**
 * Splits a text into chunks of random sizes. Some chunks have an extension, and some bodies a trailer, that
 * looks like a request.
 */
function inChunks(text: string, random: Random): Framing {
  let wire = '';
  for (let at = 0; at < text.length;) {
    const chunk = text.slice(at, at + 1 + below(random, text.length));
    const extension = random() < 0.3 ? ';x="GET /api/site HTTP/1.1"' : '';
    wire += `${chunk.length.toString(16)}${extension}\r\n${chunk}\r\n`;
    at += chunk.length;
  }
  const trailer = pick(random, TRAILERS);
  const lines = ['Transfer-Encoding: chunked', ...(trailer !== '' && random() < 0.5 ? ['Trailer: X'] : [])];
  // node:http rejects Content-Length in a trailer.
  const isClear = !trailer.includes('Content-Length');
  return { lines, wire: `${wire}0\r\n${trailer}\r\n`, body: text, isClear };
}

const TRAILERS = [
  ...Array<string>(10).fill(''),
  'X: GET /api/site HTTP/1.1\r\nHost: evil\r\nAuthorization: Basic eDp5\r\n',
  'Content-Length: 40\r\n',
];

const NAMED = [
  ...['content-length', 'Transfer-Encoding', 'HOST', 'authorization', 'Cookie', 'via', 'expect', 'trailer'],
  ...['te', 'keep-alive', 'x-forwarded-for', 'content-type', 'X-Mine', 'connection', '', '"content-length"'],
];
const SPOOFED = [
  'X-Forwarded-For: 203.0.113.7',
  'X-Forwarded-Host: evil.example',
  'X_Forwarded_For: 203.0.113.7',
  'Forwarded: for=203.0.113.7;host=evil.example',
  'X-Real-IP: 203.0.113.7',
];
const OTHERS = [
  'Authorization: Basic MzAwJTNBMjEuVDExOTk4L1VTRVIwMTpwYXNzd29yZA==',
  'Content-Type: application/json',
  'Accept: application/json',
  'Cookie: a=b',
  'TE: trailers',
  'X-Mine: 1',
];
const FLOODS = [500, 900, 980, 1001, 2500];

function extras(random: Random): string[] {
  const lines = OTHERS.filter(() => random() < 0.5);
  if (random() < 0.4) lines.push(`Connection: ${connectionList(random)}`);
  if (random() < 0.2) lines.push(pick(random, SPOOFED));
  if (random() < 0.1) lines.push(pick(random, ['Expect: 100-continue', 'Expect: x', 'Upgrade: h2c']));
  if (random() < 0.08) lines.push(flood(pick(random, FLOODS)));
  return lines;
}

const connectionList = (random: Random): string =>
  Array.from({ length: 1 + below(random, 4) }, () => pick(random, NAMED)).join(
    pick(random, [',', ', ', ' ,\t']),
  );

const flood = (count: number): string => Array.from({ length: count }, (_, at) => `a${at}:`).join('\r\n');

function shuffled(random: Random, lines: readonly string[]): string[] {
  const order = lines.map((line) => ({ line, key: random() }));
  return order.sort((one, other) => one.key - other.key).map(({ line }) => line);
}
