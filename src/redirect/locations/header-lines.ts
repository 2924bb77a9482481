// The lines of a 10320/headers value that a redirect may carry.
import { type TemplateForms, fillTemplate } from './template.js';

export type HeaderLine = readonly [name: string, value: string];

const TOKEN = /^[!#$%&'*+.^_`|~\dA-Za-z-]+$/;

/**
 * One header a line, `Name: value`, with the handle filled in. HDLProxy sends any header, a second Location and
 * Set-Cookie too; here only those of `allowed` (in lower case). Lines for the head of the HTML are left out: a record
 * could run scripts.
 */
export function headerLinesIn(
  text: string,
  { forms, allowed }: { forms: TemplateForms; allowed: readonly string[] },
): HeaderLine[] {
  return text.split(/\r\n|\r|\n/).flatMap((line): HeaderLine[] => {
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(0, colon)).trim();
    if (!TOKEN.test(name) || !allowed.includes(name.toLowerCase())) return [];
    const value = fillTemplate(line.slice(colon + 1).trim(), forms);
    return value !== undefined && /^[\x20-\x7e]*$/.test(value) ? [[name, value]] : [];
  });
}
