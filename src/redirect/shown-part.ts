// The part of a record that its page shows: the first values, and the beginning of long data. Nothing behind it is read.
import type { HandleValue } from '../handle/value.js';

/** Records of the wild have at most some dozens of values. */
const MAX_SHOWN_VALUES = 200;
/** Of all data of a page. */
const MAX_SHOWN_CHARS = 64 * 1024;
/** Of one value, so that a long one does not hide those behind it. */
const MAX_VALUE_CHARS = 16 * 1024;
/** Of a type, a lifetime, a time, permissions. */
const MAX_FIELD_CHARS = 1000;

export interface ShownValue extends HandleValue {
  /** Whether only the beginning of the data is here. */
  isCut: boolean;
}

export function shownPart(values: readonly HandleValue[]): ShownValue[] {
  const shown: ShownValue[] = [];
  let left = MAX_SHOWN_CHARS;
  for (const value of values) {
    if (shown.length === MAX_SHOWN_VALUES || left <= 0) break;
    const data = createCutter(Math.min(left, MAX_VALUE_CHARS));
    const fields = createCutter(MAX_FIELD_CHARS);
    const { type, ttl, timestamp, permissions } = value;
    shown.push({
      ...(fields.cut({ type, ttl, timestamp, permissions }) as Omit<HandleValue, 'index' | 'data'>),
      index: value.index,
      data: data.cut(value.data),
      isCut: data.isCut() || fields.isCut(),
    });
    left -= data.usedChars() + fields.usedChars();
  }
  return shown;
}

interface Cutter {
  /** The beginning of JSON, as a copy that is valid itself. */
  cut: (json: unknown) => unknown;
  usedChars: () => number;
  isCut: () => boolean;
}

/** So that lists of empty elements have a length too. */
const ELEMENT_CHARS = 4;
/** Of structures as indented JSON: what is nested deeply is long by its indentation. */
const INDENT_CHARS = 2;

/** One for each value: what one call has used is missing to the next. */
function createCutter(maxChars: number): Cutter {
  let used = 0;
  let isCut = false;
  const hasRoom = (): boolean => {
    isCut ||= used >= maxChars;
    return used < maxChars;
  };
  function cut(json: unknown, depth = 0): unknown {
    if (typeof json === 'string') return cutText(json);
    used += ELEMENT_CHARS + depth * INDENT_CHARS;
    if (Array.isArray(json)) return cutList(json, depth + 1);
    return typeof json === 'object' && json !== null ? cutObject(json, depth + 1) : json;
  }
  function cutText(text: string): string {
    const shown = text.slice(0, Math.max(0, maxChars - used));
    isCut ||= shown.length < text.length;
    used += shown.length;
    return shown;
  }
  function cutList(list: readonly unknown[], depth: number): unknown[] {
    const shown: unknown[] = [];
    for (const element of list) {
      if (!hasRoom()) break;
      shown.push(cut(element, depth));
    }
    // A reference without its index would be none.
    if (isCut && shown.length > 1) shown.pop();
    return shown;
  }
  function cutObject(object: object, depth: number): object {
    const shown: [string, unknown][] = [];
    for (const name in object) {
      if (!hasRoom()) break;
      shown.push([cutText(name), cut((object as Record<string, unknown>)[name], depth)]);
    }
    return Object.fromEntries(shown);
  }
  return { cut, usedChars: () => used, isCut: () => isCut };
}
