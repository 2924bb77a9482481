// Compresses the JSON of records: replaces its usual phrases by single bytes, and packs the digits of timestamps.
import type { Bytes } from '../../handle/bytes.js';

/** Phrases of Handle.Net JSON around the digits of a timestamp, which are packed into six bytes. The longer one precedes. */
const DATED_PHRASES = [
  '"},"ttl":86400,"timestamp":"20',
  '"}},"ttl":86400,"timestamp":"20',
  ',"timestamp":"20',
]
  .flatMap((before) => [
    { before, after: 'Z"},{"index":' },
    { before, after: '' },
  ])
  .map((phrase, index) => ({ ...phrase, code: phraseCode(index) }));
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

const CODES = new Map(PHRASES.map((phrase, index) => [phrase, phraseCode(DATED_PHRASES.length + index)]));
const PHRASE = createPhrasePattern();
const CONTROL = /[\0-\x1f]/;
/** A code, with the packed digits that follow some. */
const CODE = /[\x01-\x06][^]{6}|[\x07-\x1f]/g;

/** Returns the control character of a phrase; `AS_IS` is none. */
function phraseCode(index: number): string {
  return String.fromCharCode(index + 1);
}

function createPhrasePattern(): RegExp {
  const literal = (text: string): string => text.replaceAll(/[[\]{}/.]/g, String.raw`\$&`);
  const dated = DATED_PHRASES.map(({ before, after }) => literal(before) + DIGITS + literal(after));
  return new RegExp([...dated, ...PHRASES.map(literal)].join('|'), 'g');
}

/** Compresses a text of arbitrary bytes, which `expand` restores. */
export function compress(text: Bytes): Bytes {
  if (text.length > MAX_CHARS || CONTROL.test(text)) return (AS_IS + text) as Bytes;
  return text.replace(PHRASE, (phrase) => CODES.get(phrase) ?? packDated(phrase)) as Bytes;
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

/** Characters of the digits with their separators, and of a pair with the separator after it. */
const [DIGITS_CHARS, PAIR_CHARS] = [18, 3];
/** The byte of two digits: no control character. */
const PACKED_00 = 0x20;
const PAIRS = Array.from({ length: PACKED_00 + 100 }, (_, byte) => String(byte - PACKED_00).padStart(2, '0'));

function packDated(text: string): string {
  const dated = DATED_PHRASES.find(({ before, after }) => text.startsWith(before) && text.endsWith(after));
  if (dated === undefined) return text;
  let packed = dated.code;
  const start = dated.before.length;
  for (let at = start; at < start + DIGITS_CHARS; at += PAIR_CHARS)
    packed += String.fromCharCode(
      PACKED_00 + (text.charCodeAt(at) - ZERO) * 10 + text.charCodeAt(at + 1) - ZERO,
    );
  return packed;
}

const ZERO = '0'.charCodeAt(0);

/** Unpacks the digits after a code; not in a loop, because each read of a record does it for every value. */
function unpackDigits(code: string): string {
  const date = `${PAIRS[code.charCodeAt(1)] ?? ''}-${PAIRS[code.charCodeAt(2)] ?? ''}-${PAIRS[code.charCodeAt(3)] ?? ''}`;
  const time = `${PAIRS[code.charCodeAt(4)] ?? ''}:${PAIRS[code.charCodeAt(5)] ?? ''}:${PAIRS[code.charCodeAt(6)] ?? ''}`;
  return `${date}T${time}`;
}
