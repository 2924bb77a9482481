// Compresses the JSON of records: replaces its usual phrases by single bytes, and packs the digits of timestamps.
import type { Bytes } from '../../handle/bytes.js';

/** Phrases of Handle.Net JSON around the digits of a timestamp, which are packed into six bytes. */
const BEFORE_DATE = ['"},"ttl":86400,"timestamp":"20', '"}},"ttl":86400,"timestamp":"20', ',"timestamp":"20'];
const AFTER_DATE = 'Z"},{"index":';
const DATED_PHRASES = BEFORE_DATE.flatMap((before) => [
  { before, after: AFTER_DATE },
  { before, after: '' },
]);
/** The digits after the century. */
const DIGITS = String.raw`\d\d-\d\d-\d\dT\d\d:\d\d:\d\d`;

/** The other phrases, longer before their prefixes. Each is stored as a control character, which compact JSON lacks. */
const PHRASES = [
  '"},"ttl":',
  '"}},"ttl":',
  'Z"},{"index":',
  'Z"}]',
  '[{"index":',
  ',"type":"URL","data":{"format":"string","value":"https://',
  ',"type":"URL","data":{"format":"string","value":"http://',
  ',"type":"HS_ADMIN","data":{"format":"admin","value":{"handle":"',
  ',"type":"10320/loc","data":{"format":"string","value":"',
  ',"type":"CHECKSUM","data":{"format":"string","value":"',
  ',"type":"EMAIL","data":{"format":"string","value":"',
  ',"type":"DESC","data":{"format":"string","value":"',
  ',"type":"',
  '","data":{"format":"string","value":"',
  '","data":{"format":"base64","value":"',
  '","index":',
  ',"permissions":"011111110011',
  ',"permissions":"111111110010',
  ',"permissions":"',
  'https://',
  'http://',
];

/** First byte of a text that is stored uncompressed. */
const AS_IS = '\0';

/** Maximum length of a text to compress, because compression takes about 10 ms per MiB. */
const MAX_CHARS = 16 * 1024;

/** The control character of each phrase; of a dated one without its digits. `AS_IS` is none. */
const CODES = new Map(
  [...DATED_PHRASES.map(({ before, after }) => before + after), ...PHRASES].map((phrase, index) => [
    phrase,
    String.fromCharCode(index + 1),
  ]),
);
const PHRASE = createPhrasePattern();
const CONTROL = /[\0-\x1f]/;
/** A code, with the packed digits that follow some. */
const CODE = /[\x01-\x06][^]{6}|[\x07-\x1f]/g;

function createPhrasePattern(): RegExp {
  const literal = (text: string): string => text.replaceAll(/[[\]{}/.]/g, String.raw`\$&`);
  const dated = `(${BEFORE_DATE.map(literal).join('|')})(${DIGITS})(${literal(AFTER_DATE)})?`;
  return new RegExp([dated, ...PHRASES.map(literal)].join('|'), 'g');
}

/** Compresses a text of arbitrary bytes, which `expand` restores. */
export function compress(text: Bytes): Bytes {
  if (text.length > MAX_CHARS || CONTROL.test(text)) return (AS_IS + text) as Bytes;
  return text.replace(PHRASE, compressPhrase) as Bytes;
}

function compressPhrase(phrase: string, before?: string, digits = '', after = ''): string {
  const code = CODES.get(before === undefined ? phrase : before + after) ?? phrase;
  let packed = '';
  for (let at = 0; at < digits.length; at += PAIR_CHARS)
    packed += String.fromCharCode(
      PACKED_00 + (digits.charCodeAt(at) - ZERO) * 10 + digits.charCodeAt(at + 1) - ZERO,
    );
  return code + packed;
}

export function expand(stored: Bytes): Bytes {
  if (stored.startsWith(AS_IS)) return stored.slice(1) as Bytes;
  return stored.replace(CODE, expandCode) as Bytes;
}

function expandCode(code: string): string {
  const index = code.charCodeAt(0) - 1;
  const dated = DATED_PHRASES[index];
  if (dated === undefined) return PHRASES[index - DATED_PHRASES.length] ?? '';
  return dated.before + unpackDigits(code) + dated.after;
}

/** Characters of two digits with the separator after them. */
const PAIR_CHARS = 3;
/** The byte of two digits: no control character. */
const PACKED_00 = 0x20;
const PAIRS = Array.from({ length: PACKED_00 + 100 }, (_, byte) => String(byte - PACKED_00).padStart(2, '0'));

const ZERO = '0'.charCodeAt(0);

/** Unpacks the digits after a code; not in a loop, because each read of a record does it for every value. */
function unpackDigits(code: string): string {
  const date = `${PAIRS[code.charCodeAt(1)] ?? ''}-${PAIRS[code.charCodeAt(2)] ?? ''}-${PAIRS[code.charCodeAt(3)] ?? ''}`;
  const time = `${PAIRS[code.charCodeAt(4)] ?? ''}:${PAIRS[code.charCodeAt(5)] ?? ''}:${PAIRS[code.charCodeAt(6)] ?? ''}`;
  return `${date}T${time}`;
}
