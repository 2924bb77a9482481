// Scans the text of a location list as HDLProxy does: tolerant, and not XML. No document type, no entities but the five.
import type { Steps } from '../../time-slicer.js';

interface ScannedElement {
  /** In lower case: HDLProxy finds `Location` and `LOCATION` too. */
  name: string;
  /** Names are exact: `HREF` is not `href`. */
  attributes: ReadonlyMap<string, string>;
  /** Text directly in the element. */
  text: string;
}

interface ScannedDocument {
  root: ScannedElement;
  /** The elements directly below the root; deeper ones do not count (recording "loc xml: nested one deeper"). */
  children: ScannedElement[];
}

/** Lists of the DOI system and of HDLProxy's documentation have some kilobytes. */
export const MAX_LIST_CHARS = 1024 * 1024;
const MAX_CHILDREN = 10_000;
/** HDLProxy knows about 20. */
const MAX_ATTRIBUTES = 100;

/** Characters scanned between two yields. */
const CHARS_PER_STEP = 4 * 1024;

/**
 * The first element of the text with its children. Undefined for a text without elements, with a tag that does not
 * end, with a document type, or beyond the bounds.
 */
export function* scanDocument(text: string): Steps<ScannedDocument | undefined> {
  if (text.length > MAX_LIST_CHARS) return undefined;
  const tree = new OpenTree();
  let steppedAt = 0;
  for (let at = 0, open = text.indexOf('<'); open !== -1; open = text.indexOf('<', at)) {
    yield* tree.addText(text, at, open);
    const tag = yield* readTag(text, open);
    if (tag === undefined || !tree.add(tag)) return undefined;
    if (tree.isComplete) break;
    at = tag.end;
    if (at - steppedAt < CHARS_PER_STEP) continue;
    steppedAt = at;
    yield;
  }
  return tree.document;
}

/** The state of a scan. Elements may stay open, and any end tag closes the innermost element. */
class OpenTree {
  document: ScannedDocument | undefined;
  #depth = 0;

  /** True after the first root; a second root does not count (recording "loc xml: two roots"). */
  get isComplete(): boolean {
    return this.#depth === 0 && this.document !== undefined;
  }

  *addText(text: string, from: number, to: number): Steps<void> {
    const child = this.#depth === 2 ? this.document?.children.at(-1) : undefined;
    if (child !== undefined && from < to) child.text += yield* decodeEntities(text.slice(from, to));
  }

  /** False when the document is rejected. */
  add(tag: Tag): boolean {
    if (tag.kind === 'start') return this.#open(tag);
    if (tag.kind === 'end') this.#depth = Math.max(0, this.#depth - 1);
    return tag.kind !== 'document type' || this.#depth > 0;
  }

  #open({ name, attributes, isEmpty }: StartTag): boolean {
    const element = { name, attributes, text: '' };
    this.document ??= { root: element, children: [] };
    const { children } = this.document;
    if (this.#depth === 1) children.push(element);
    if (!isEmpty) this.#depth += 1;
    return children.length <= MAX_CHILDREN;
  }
}

interface StartTag {
  kind: 'start';
  end: number;
  name: string;
  attributes: Map<string, string>;
  isEmpty: boolean;
}

type Tag = StartTag | { kind: 'end' | 'document type' | 'other'; end: number };

/** Undefined when the tag does not end. */
function* readTag(text: string, open: number): Steps<Tag | undefined> {
  if (text.startsWith('<!--', open)) return tagUntil('other', text, { from: open + 4, mark: '-->' });
  if (text.startsWith('<![CDATA[', open)) return tagUntil('other', text, { from: open, mark: ']]>' });
  if (text.startsWith('</', open)) return tagUntil('end', text, { from: open, mark: '>' });
  if (text.startsWith('<!', open)) return tagUntil('document type', text, { from: open, mark: '>' });
  // HDLProxy treats an XML declaration as the root, and finds nothing below it.
  if (text.startsWith('<?', open)) return tagUntil('other', text, { from: open, mark: '>' });
  const nameAt = endOfMatch(SPACE, text, open + 1);
  const nameEnd = endOfMatch(NAME, text, nameAt);
  const read = yield* readAttributes(text, nameEnd);
  return read && { kind: 'start', name: text.slice(nameAt, nameEnd).toLowerCase(), ...read };
}

function tagUntil(
  kind: 'end' | 'document type' | 'other',
  text: string,
  { from, mark }: { from: number; mark: string },
): Tag | undefined {
  const at = text.indexOf(mark, from);
  return at === -1 ? undefined : { kind, end: at + mark.length };
}

const SPACE = /\s*/y;
const NAME = /[^\s=>"'/]*/y;
const BARE_VALUE = /[^\s>]*/y;

function endOfMatch(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return at + (pattern.exec(text)?.[0].length ?? 0);
}

type AttributesOfTag = Pick<StartTag, 'attributes' | 'end' | 'isEmpty'>;

/** The last of two equal names counts; a name without a value has the value `NULL` (recording "link: every attribute"). */
function* readAttributes(text: string, from: number): Steps<AttributesOfTag | undefined> {
  const attributes = new Map<string, string>();
  let at = endOfMatch(SPACE, text, from);
  while (at < text.length && attributes.size <= MAX_ATTRIBUTES) {
    if (text[at] === '>') return { attributes, end: at + 1, isEmpty: text[at - 1] === '/' };
    const nameEnd = endOfMatch(NAME, text, at);
    const equals = endOfMatch(SPACE, text, nameEnd);
    if (nameEnd === at) {
      // A lone quote, slash or equals sign is skipped.
      at += 1;
    } else if (text[equals] === '=') {
      const value = readValue(text, endOfMatch(SPACE, text, equals + 1));
      if (value === undefined) return undefined;
      attributes.set(text.slice(at, nameEnd), yield* decodeEntities(value.text));
      at = value.end;
    } else {
      attributes.set(text.slice(at, nameEnd), 'NULL');
      at = nameEnd;
    }
    at = endOfMatch(SPACE, text, at);
  }
  return undefined;
}

function readValue(text: string, at: number): { text: string; end: number } | undefined {
  const quote = text[at];
  if (quote !== '"' && quote !== "'") {
    const end = endOfMatch(BARE_VALUE, text, at);
    const value = text.slice(at, end);
    // `<location href=x/>` is an empty element.
    return { text: text[end] === '>' ? value.replace(/\/$/, '') : value, end };
  }
  const end = text.indexOf(quote, at + 1);
  return end === -1 ? undefined : { text: text.slice(at + 1, end), end: end + 1 };
}

const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** A bare `&` stays as it is (recording "loc xml: bare & in href"). */
function* decodeEntities(text: string): Steps<string> {
  return text.includes('&') ? yield* changeInPieces(text, decodePiece) : text;
}

const decodePiece = (text: string): string =>
  text.replace(
    /&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#[xX]([\dA-Fa-f]{1,6}));/g,
    (whole, name?: string, decimal?: string, hex?: string) => {
      if (name !== undefined) return NAMED[name] ?? whole;
      const code = decimal === undefined ? parseInt(hex ?? '', 16) : Number(decimal);
      return code > 0x10ffff ? whole : String.fromCodePoint(code);
    },
  );

/** Characters changed between two yields. */
const PIECE_CHARS = 8 * 1024;
/** `&#x10ffff;` has ten characters. */
const MAX_ENTITY_CHARS = 10;

/** Changes a text that may be as long as a record. `change` sees no piece that ends within an entity or a pair of surrogates. */
export function* changeInPieces(text: string, change: (piece: string) => string): Steps<string> {
  if (text.length <= PIECE_CHARS) return change(text);
  const changed: string[] = [];
  for (let at = 0, end = 0; at < text.length; at = end) {
    end = endOfPiece(text, at + PIECE_CHARS);
    changed.push(change(text.slice(at, end)));
    yield;
  }
  return changed.join('');
}

function endOfPiece(text: string, end: number): number {
  if (end >= text.length) return text.length;
  const entity = text.slice(end - MAX_ENTITY_CHARS, end).lastIndexOf('&');
  if (entity !== -1) return end - MAX_ENTITY_CHARS + entity;
  return /[\udc00-\udfff]/.test(text.charAt(end)) ? end - 1 : end;
}
