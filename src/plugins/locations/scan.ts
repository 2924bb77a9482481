// Scans a location list as leniently as HDLProxy, which accepts malformed XML. Rejects document types and
// knows only the five predefined entities.
import type { Steps } from '../../time-slicer.js';

interface ScannedElement {
  /** In lower case, because HDLProxy matches element names case-insensitively. */
  name: string;
  /** Attribute names are case-sensitive. */
  attributes: ReadonlyMap<string, string>;
  /** Text directly inside the element. */
  text: string;
}

interface ScannedDocument {
  root: ScannedElement;
  /** The root's children, without deeper descendants (recording "loc xml: nested one deeper"). */
  children: ScannedElement[];
}

/** Maximum list length. Lists in the DOI system and in HDLProxy's documentation have a few kilobytes. */
export const MAX_LIST_CHARS = 1024 * 1024;
const MAX_CHILDREN = 10_000;
/** Maximum attributes per element. HDLProxy defines about 20. */
const MAX_ATTRIBUTES = 100;

/** Number of characters scanned between yields. */
const CHARS_PER_STEP = 4 * 1024;

/**
 * Returns the first element with its children. Returns undefined for text without elements, with an
 * unterminated tag, with a document type, or over the limits.
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

/** Scan state. Elements may stay open, and any end tag closes the innermost element. */
class OpenTree {
  document: ScannedDocument | undefined;
  #depth = 0;

  /** True once the first root has closed; further roots are ignored (recording "loc xml: two roots"). */
  get isComplete(): boolean {
    return this.#depth === 0 && this.document !== undefined;
  }

  *addText(text: string, from: number, to: number): Steps<void> {
    const child = this.#depth === 2 ? this.document?.children.at(-1) : undefined;
    if (child !== undefined && from < to) child.text += yield* decodeEntities(text.slice(from, to));
  }

  /** Returns false if the document is rejected. */
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

interface AttributesOfTag {
  attributes: Map<string, string>;
  end: number;
  isEmpty: boolean;
}

interface StartTag extends AttributesOfTag {
  kind: 'start';
  name: string;
}

type Tag = StartTag | { kind: 'end' | 'document type' | 'other'; end: number };

/** Returns undefined for an unterminated tag. */
function* readTag(text: string, open: number): Steps<Tag | undefined> {
  if (text.startsWith('<!--', open)) return tagUntil('other', text, { from: open + 4, mark: '-->' });
  if (text.startsWith('<![CDATA[', open)) return tagUntil('other', text, { from: open, mark: ']]>' });
  if (text.startsWith('</', open)) return tagUntil('end', text, { from: open, mark: '>' });
  if (text.startsWith('<!', open)) return tagUntil('document type', text, { from: open, mark: '>' });
  // Unlike HDLProxy, skips an XML declaration instead of reading it as an empty root.
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

/** The last duplicate wins; an attribute without a value is `NULL` (recording "link: every attribute"). */
function* readAttributes(text: string, from: number): Steps<AttributesOfTag | undefined> {
  const attributes = new Map<string, string>();
  let at = endOfMatch(SPACE, text, from);
  while (at < text.length && attributes.size <= MAX_ATTRIBUTES) {
    if (text[at] === '>') return { attributes, end: at + 1, isEmpty: text[at - 1] === '/' };
    const nameEnd = endOfMatch(NAME, text, at);
    const equals = endOfMatch(SPACE, text, nameEnd);
    if (nameEnd === at) {
      // Skips a lone quote, slash or equals sign.
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
    // The slash in `<location href=x/>` closes the element.
    return { text: text[end] === '>' ? value.replace(/\/$/, '') : value, end };
  }
  const end = text.indexOf(quote, at + 1);
  return end === -1 ? undefined : { text: text.slice(at + 1, end), end: end + 1 };
}

const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** Leaves a bare `&` unchanged (recording "loc xml: bare & in href"). */
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

/** Number of characters converted between yields. */
const PIECE_CHARS = 8 * 1024;
/** Length of the longest entity, `&#x10ffff;`. */
const MAX_ENTITY_CHARS = 10;

/** Converts long text in pieces. No piece ends inside an entity or a surrogate pair. */
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
