// Search patterns: `*` stands for any text, `~` takes the next character as it is.

/** Goes through the text once per star, however the pattern is made. */
export function matchesPattern(pattern: string, text: string): boolean {
  const [first = '', ...rest] = readPattern(pattern);
  const last = rest.pop();
  if (last === undefined) return text === first;
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) {
    return false;
  }
  const end = text.length - last.length;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

/** The texts between the stars. */
function readPattern(pattern: string): string[] {
  const parts: string[] = [];
  let part = '';
  for (const token of pattern.match(/~[^]|[^]/gu) ?? []) {
    if (token === '*') {
      parts.push(part);
      part = '';
    } else part += token.length > 1 && token.startsWith('~') ? token.slice(1) : token;
  }
  return [...parts, part];
}
