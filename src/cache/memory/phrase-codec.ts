// Compresses record JSON in memory: frequent phrases of Handle server JSON become one byte each.
import type { Bytes } from '../../handle/bytes.js';

/**
 * Phrases of Handle.Net JSON; a longer phrase precedes its own prefixes. Each is stored as a control
 * character (list index plus 1), because compact JSON contains no control characters.
 */
const PHRASES = [
  '"},"ttl":86400,"timestamp":"20',
  '"}},"ttl":86400,"timestamp":"20',
  '"},"ttl":',
  '"}},"ttl":',
  ',"timestamp":"20',
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

const escaped = (phrase: string): string => phrase.replaceAll(/[[\]{}/.]/g, String.raw`\$&`);
const PHRASE = new RegExp(PHRASES.map(escaped).join('|'), 'g');
const CODE_OF = new Map(PHRASES.map((phrase, index) => [phrase, String.fromCharCode(index + 1)]));
const CONTROL = /[\0-\x1f]/;
const CODES = /[\x01-\x1f]/g;

/** Compresses a text of arbitrary bytes, which `expand` restores. */
export function compress(text: Bytes): Bytes {
  if (text === '') return text;
  if (text.length > MAX_CHARS || CONTROL.test(text)) return (AS_IS + text) as Bytes;
  return text.replace(PHRASE, (phrase) => CODE_OF.get(phrase) ?? phrase) as Bytes;
}

export function expand(stored: Bytes): Bytes {
  if (stored.startsWith(AS_IS)) return stored.slice(1) as Bytes;
  return stored.replace(CODES, (code) => PHRASES[code.charCodeAt(0) - 1] ?? code) as Bytes;
}
