// Requests whose JSON bodies have a hostile shape: numbers of elements, nesting, and types, plain or compressed.
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib';
import { type Random } from '../support/random.js';
import { below, pick } from './mutate.js';

/** Below and above the limits of the interfaces. */
const COUNTS = [0, 1, 2, 11, 63, 64, 65, 99, 100, 101, 999, 1000, 1001, 2047, 2048, 2049, 12_000, 40_000];
const LEVELS = [1, 2, 5, 31, 32, 33, 999, 1001, 20_000];
const ATOMS = ['0', '-0', '1e999', '1.5', '2147483648', 'null', 'true', '""', '"x"', '"21.T11998/page"'];
const ODD_TEXTS = ['"\\ud800"', '"\\u0000"', '"1:21.T1/a"', '"__proto__"', String.raw`"a,[{\"\\"`];
const NAMES = [
  ...['handles', 'type', 'index', 'idx', 'parsed_data', 'data', 'timestamp', 'ttl_type', 'ttl', 'refs'],
  ...[
    'privs',
    'admin_read',
    'adminId',
    'adminIdIndex',
    'perms',
    'handle',
    '__proto__',
    'constructor',
    'toJSON',
  ],
];
/** Maximum length of a body (characters), below http.maxBodySize. */
const MOST_CHARS = 600_000;

const repeat = (count: number, text: string): string[] =>
  Array<string>(Math.min(count, Math.floor(MOST_CHARS / (text.length + 8)))).fill(text);

const list = (count: number, element: string): string => `[${repeat(count, element).join()}]`;

/** Returns an object of known members, or of different unknown ones. */
function object(random: Random, count: number, member: string): string {
  const isKnown = random() < 0.5;
  const members = repeat(count, member).map(
    (value, at) => `"${isKnown ? pick(random, NAMES) : at.toString(36)}":${value}`,
  );
  return `{${members.join()}}`;
}

function nested(levels: number, isList: boolean): string {
  const [open, close] = isList ? ['[', ']'] : ['{"a":', '}'];
  return `${open.repeat(levels)}0${close.repeat(levels)}`;
}

/** Returns JSON of any shape; the inner values of long lists are alike. */
function anyJson(random: Random, depth = 0): string {
  switch (depth > 3 ? 0 : below(random, 6)) {
    case 0:
      return pick(random, ATOMS);
    case 1:
      return pick(random, ODD_TEXTS);
    case 2:
      return nested(pick(random, LEVELS), random() < 0.5);
    case 3:
      return object(random, pick(random, COUNTS), anyJson(random, depth + 1));
    default:
      return list(pick(random, COUNTS), anyJson(random, depth + 1));
  }
}

/** Returns a value of ePIC v2 in which some members have any shape. */
function v2Value(random: Random): string {
  const type = pick(random, ['"URL"', '"HS_ADMIN"', '"HS_VLIST"', '"HS_SECKEY"', anyJson(random, 2)]);
  const members = NAMES.filter(() => random() < 0.2).map((name) => `"${name}":${anyJson(random, 1)}`);
  return `{"type":${type}${members.map((member) => `,${member}`).join('')}}`;
}

function batchBody(random: Random): string {
  const handles = random() < 0.5 ? '["21.T11998/page"]' : anyJson(random);
  const members = ['type', 'index'].filter(() => random() < 0.5);
  return `{"handles":${handles}${members.map((name) => `,"${name}":${anyJson(random)}`).join('')}}`;
}

const v2Body = (random: Random): string =>
  list(random() < 0.7 ? 1 + below(random, 3) : pick(random, COUNTS), v2Value(random));

const CODINGS: Record<string, (text: string) => Buffer> = {
  gzip: gzipSync,
  deflate: deflateSync,
  br: (text) => brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 2 } }),
};

const REQUEST_LINES: readonly [line: string, bodyOf: (random: Random) => string][] = [
  ['POST /api/resolve', batchBody],
  ['PUT /api/v2/handles/21.T11998/page', v2Body],
  ['POST /api/v2/handles/21.T11998', v2Body],
];

/** A login whose writes the demo server rejects. */
const AUTHORIZATION = 'Authorization: Basic MzAwJTNBMjEuVDExOTk4L1VTRVIwMTp3cm9uZw==\r\n';

/** Returns a request with a body of a hostile shape. */
export function hostileRequest(random: Random): Buffer {
  const [line, bodyOf] = pick(random, REQUEST_LINES);
  const text = (random() < 0.2 ? anyJson(random) : bodyOf(random)).slice(0, MOST_CHARS);
  const coding = random() < 0.5 ? pick(random, Object.keys(CODINGS)) : undefined;
  const body = (coding === undefined ? undefined : CODINGS[coding]?.(text)) ?? Buffer.from(text);
  const head =
    `${line} HTTP/1.1\r\nHost: proxy.example\r\nContent-Type: application/json\r\n` +
    (line.includes('/v2/') ? AUTHORIZATION : '') +
    (coding === undefined ? '' : `Content-Encoding: ${coding}\r\n`) +
    `Content-Length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}
