// Compresses the JSON of records: replaces its usual phrases by single bytes, and packs the digits of timestamps.
import type { Bytes } from '../../handle/bytes.js';

/** Phrases of Handle.Net JSON up to the century of a timestamp, whose other digits follow as six bytes. */
const DATED_PHRASES = [
  '"},"ttl":86400,"timestamp":"20',
  '"}},"ttl":86400,"timestamp":"20',
  ',"timestamp":"20',
];
const DIGITS = String.raw`\d\d-\d\d-\d\dT\d\d:\d\d:\d\d`;
const DIGITS_LENGTH = 17;

/**
 * All phrases; a longer phrase precedes its own prefixes. Each is stored as a control character (list index plus 1),
 * because compact JSON contains no control characters.
 */
const PHRASES = [
  ...DATED_PHRASES,
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

/** Captures the phrase, so that `split` returns texts and phrases in turn. */
const PHRASE = createPhrasePattern();
const CODE_OF = new Map(PHRASES.map((phrase, index) => [phrase, String.fromCharCode(index + 1)]));
const CONTROL = /[\0-\x1f]/;
/** A code, with the packed digits that follow some. */
const CODES = /[\x01-\x03][^]{6}|[\x04-\x1f]/g;

function createPhrasePattern(): RegExp {
  const anyOf = (phrases: readonly string[]): string =>
    phrases.map((phrase) => phrase.replaceAll(/[[\]{}/.]/g, String.raw`\$&`)).join('|');
  return new RegExp(
    `((?:${anyOf(DATED_PHRASES)})(?=${DIGITS})|${anyOf(PHRASES.slice(DATED_PHRASES.length))})`,
  );
}

/** Compresses a text of arbitrary bytes, which `expand` restores. */
export function compress(text: Bytes): Bytes {
  if (text === '') return text;
  if (text.length > MAX_CHARS || CONTROL.test(text)) return (AS_IS + text) as Bytes;
  const [start = '', ...parts] = text.split(PHRASE);
  let stored = start;
  for (let at = 0; at < parts.length; at += 2) {
    const [phrase = '', rest = ''] = [parts[at], parts[at + 1]];
    stored += CODE_OF.get(phrase) ?? '';
    stored += DATED_PHRASES.includes(phrase) ? packDigits(rest) + rest.slice(DIGITS_LENGTH) : rest;
  }
  return stored as Bytes;
}

export function expand(stored: Bytes): Bytes {
  if (stored.startsWith(AS_IS)) return stored.slice(1) as Bytes;
  return stored.replace(CODES, expandCode) as Bytes;
}

function expandCode(code: string): string {
  const index = code.charCodeAt(0) - 1;
  const phrase = PHRASES[index] ?? '';
  return index < DATED_PHRASES.length ? phrase + unpackDigits(code) : phrase;
}

/** The byte of two digits: no control character. */
const PACKED_00 = 0x20;
/** Two digits by their byte. */
const PAIRS = Array.from({ length: PACKED_00 + 100 }, (_, byte) => String(byte - PACKED_00).padStart(2, '0'));

/** Packs the digits at the start of `text`, in the layout of DIGITS. */
function packDigits(text: string): string {
  let packed = '';
  for (let at = 0; at < DIGITS_LENGTH; at += 3)
    packed += String.fromCharCode(PACKED_00 + Number(text.slice(at, at + 2)));
  return packed;
}

/** Unpacks the digits after a code; not in a loop, because each read of a record does it for every value. */
function unpackDigits(code: string): string {
  const date = `${PAIRS[code.charCodeAt(1)] ?? ''}-${PAIRS[code.charCodeAt(2)] ?? ''}-${PAIRS[code.charCodeAt(3)] ?? ''}`;
  const time = `${PAIRS[code.charCodeAt(4)] ?? ''}:${PAIRS[code.charCodeAt(5)] ?? ''}:${PAIRS[code.charCodeAt(6)] ?? ''}`;
  return `${date}T${time}`;
}
