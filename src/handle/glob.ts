// Patterns of the configuration, in which `*` matches any text.
import { upperAscii } from './handle.js';

/** Returns whether a text matches. */
type Glob = (text: string) => boolean;

/** Compiles patterns, of which a text has to match one; ASCII letters match in either case. */
export function compileGlobs(patterns: readonly string[]): Glob {
  const globs = patterns.map((pattern) => compileGlob(upperAscii(pattern)));
  return function matchesAnyGlob(text) {
    const folded = upperAscii(text);
    return globs.some((matches) => matches(folded));
  };
}

/**
 * Searches the parts between the `*` in sequence. A regular expression would try every combination: with four
 * `*` and a handle of a thousand characters, this takes a minute.
 */
function compileGlob(pattern: string): Glob {
  const [first = '', ...others] = pattern.split('*');
  const last = others.pop();
  if (last === undefined) return (text) => text === first;
  return function matchesGlob(text) {
    if (!text.startsWith(first)) return false;
    let at = first.length;
    for (const part of others) {
      const found = text.indexOf(part, at);
      if (found === -1) return false;
      at = found + part.length;
    }
    return text.length - last.length >= at && text.endsWith(last);
  };
}
