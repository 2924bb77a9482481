// Changes a text that may be as long as a record, piece by piece.
import type { Steps } from '../../time-slicer.js';

/** Between two interruptions. */
const PIECE_CHARS = 8 * 1024;
/** `&#x10ffff;` has ten characters. */
const MAX_ENTITY_CHARS = 10;

/** `change` sees no piece that ends within an entity or a pair of surrogates. */
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
