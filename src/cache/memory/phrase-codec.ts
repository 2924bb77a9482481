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
const DIGITS_BYTES = 6;

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
const MAX_CODE = 0x1f;

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
  let text = '';
  let from = 0;
  for (let at = 0; at < stored.length; at++) {
    const code = stored.charCodeAt(at);
    if (code > MAX_CODE) continue;
    text += stored.slice(from, at) + (PHRASES[code - 1] ?? '');
    from = at + 1;
    if (code > DATED_PHRASES.length) continue;
    text += unpackDigits(stored, from);
    from += DIGITS_BYTES;
    at += DIGITS_BYTES;
  }
  return (text + stored.slice(from)) as Bytes;
}

/** The byte of two digits: no control character. */
const PACKED_00 = 0x20;
const PAIRS = Array.from({ length: 100 }, (_, pair) => String(pair).padStart(2, '0'));

/** Packs the digits at the start of `text`, in the layout of DIGITS. */
function packDigits(text: string): string {
  let packed = '';
  for (let at = 0; at < DIGITS_LENGTH; at += 3)
    packed += String.fromCharCode(PACKED_00 + Number(text.slice(at, at + 2)));
  return packed;
}

function unpackDigits(stored: string, from: number): string {
  let digits = '';
  for (let at = 0; at < DIGITS_BYTES; at++)
    digits += (PAIRS[stored.charCodeAt(from + at) - PACKED_00] ?? '') + ('--T::'[at] ?? '');
  return digits;
}
