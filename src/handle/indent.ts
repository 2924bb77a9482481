// Indents JSON by two spaces per level, like a Handle server for `pretty`: in steps, and within a ceiling.
import type { Steps } from '../time-slicer.js';

/**
 * Maximum length of indented JSON, as a multiple of its length without indentation. Recorded Handle JSON grows
 * by 1.85 at most (recording "create: every type"); a list at a depth of 60 levels would grow by 60.
 */
const MAX_GROWTH = 4;

/** Bytes to lay out in one step, which takes a few microseconds. */
const STEP_BYTES = 1024;

const [OTHER, SPACE, QUOTE, OPENING, CLOSING, COMMA, COLON] = [0, 1, 2, 3, 4, 5, 6];

/** Kinds of bytes outside strings. */
const KINDS = new Uint8Array(256).fill(OTHER);
for (const [kind, characters] of [
  [SPACE, ' \t\r\n'],
  [QUOTE, '"'],
  [OPENING, '{['],
  [CLOSING, '}]'],
  [COMMA, ','],
  [COLON, ':'],
] as const) {
  for (const byte of Buffer.from(characters)) KINDS[byte] = kind;
}

const QUOTE_BYTE = 0x22;
const BACKSLASH_BYTE = 0x5c;
const LINE_FEED_BYTE = 0x0a;

/**
 * Returns indented JSON with the same tokens, or `json` itself if the indented JSON would be too long. `depth` is
 * the level of the first line.
 */
export function* indentJson(json: string, depth = 0): Steps<string> {
  const bytes = Buffer.from(json, 'utf8');
  const length = yield* indentedLength(bytes, depth);
  if (length > MAX_GROWTH * bytes.length) return json;
  // Filled with spaces, so that the layout only has to skip those that it inserts.
  const indented = Buffer.alloc(length, ' ');
  yield* new Layout(bytes, indented, depth).run();
  return indented.toString('utf8');
}

/** JavaScript ignores writes beyond the end of a typed array. */
const NOWHERE = new Uint8Array(0);

/** Returns the length of indented JSON (bytes) without rendering it. */
export function* indentedLength(json: Buffer, depth = 0): Steps<number> {
  return yield* new Layout(json, NOWHERE, depth).run();
}

/** A single pass over JSON, which is laid out in `output`. */
class Layout {
  readonly #json: Uint8Array;
  readonly #output: Uint8Array;
  #depth: number;
  #at = 0;
  #length = 0;
  #isInString = false;
  /** Whether the last byte was an opening bracket. Its line break depends on the next byte. */
  #isOpen = false;

  constructor(json: Uint8Array, output: Uint8Array, depth: number) {
    this.#json = json;
    this.#output = output;
    this.#depth = depth;
  }

  /** Returns the length of the output. */
  *run(): Steps<number> {
    const { length } = this.#json;
    for (let end = STEP_BYTES; end < length; end += STEP_BYTES) {
      this.#layOutUntil(end);
      yield;
    }
    this.#layOutUntil(length);
    return this.#length;
  }

  #layOutUntil(end: number): void {
    while (this.#at < end) {
      if (this.#isInString) this.#copyString(end);
      else this.#place(this.#json[this.#at++] as number);
    }
  }

  /** Copies the rest of a string, up to `end`, or one byte further. */
  #copyString(end: number): void {
    const json = this.#json;
    const output = this.#output;
    let at = this.#at;
    let length = this.#length;
    while (at < end) {
      const byte = json[at++] as number;
      output[length++] = byte;
      if (byte === QUOTE_BYTE) {
        this.#isInString = false;
        break;
      }
      if (byte === BACKSLASH_BYTE) output[length++] = json[at++] as number;
    }
    this.#at = at;
    this.#length = length;
  }

  #place(byte: number): void {
    const kind = KINDS[byte];
    if (kind === SPACE) return;
    if (kind === CLOSING) this.#depth--;
    if (kind === CLOSING ? !this.#isOpen : this.#isOpen) this.#breakLine();
    this.#output[this.#length++] = byte;
    this.#isOpen = kind === OPENING;
    if (kind === OTHER) return;
    if (kind === OPENING) this.#depth++;
    else if (kind === COMMA) this.#breakLine();
    else if (kind === COLON) this.#length++;
    else if (kind === QUOTE) this.#isInString = true;
  }

  #breakLine(): void {
    this.#output[this.#length] = LINE_FEED_BYTE;
    // Invalid JSON may close more brackets than it opens.
    this.#length += 1 + 2 * Math.max(0, this.#depth);
  }
}
