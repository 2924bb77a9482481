// Builds a location's address from `href` or `href_template`, and the XML for `action=showurls`.
import { escapeText } from '../../html/html.js';
import type { Steps } from '../../time-slicer.js';
import { type Attributes, changeInPieces, type Location } from './location-list.js';

/** Maximum address length. Clients and proxies reject longer headers. */
const MAX_FILLED_CHARS = 8000;

/**
 * Encoded handles for templates, computed once per request because a list may hold thousands of templates.
 */
export interface TemplateForms {
  /** Value of `{hdl}`, encoded as one URL component. */
  component: string;
  /** Value of `{hdl:path}`, which keeps characters that are valid in a path. */
  path: string;
}

export const templateForms = (handle: string): TemplateForms => ({
  component: encodeComponent(handle),
  path: encodePath(handle),
});

/**
 * Returns undefined for a location without an address. An `href` is used verbatim and takes precedence, even
 * if empty (recordings "template: …").
 */
export function hrefOf(attributes: ReadonlyMap<string, string>, forms: TemplateForms): string | undefined {
  return attributes.get('href') ?? fillTemplate(attributes.get('href_template'), forms);
}

/**
 * Replaces `{hdl}` and `{hdl:path}` only. Returns undefined if repetitions of a long handle make the result
 * too long.
 */
export function fillTemplate(
  template: string | undefined,
  { component, path }: TemplateForms,
): string | undefined {
  if (template === undefined || template.length > MAX_FILLED_CHARS) return undefined;
  if (!template.includes('{hdl')) return template;
  const longest = template.split('{hdl').length * Math.max(component.length, path.length);
  if (template.length + longest > 2 * MAX_FILLED_CHARS) return undefined;
  const filled = template.replace(/\{hdl(:path)?\}/g, (_whole, isPath) => (isPath ? path : component));
  return filled.length > MAX_FILLED_CHARS ? undefined : filled;
}

/** Replaces lone surrogates with U+FFFD. */
export const wellFormed = (text: string): string => Buffer.from(text).toString();

const percent = (char: string): string => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;

/**
 * Encodes like Java's URLEncoder, but a space as `%20`: of the punctuation, only `*`, `-`, `.` and `_` stay
 * unescaped.
 */
const encodeComponent = (text: string): string =>
  encodeURIComponent(wellFormed(text)).replace(/[!'()~]/g, percent);

/** Leaves `/ ~ ! * ( ) : @ $ = ; ,` unescaped. */
const encodePath = (text: string): string => encodeURI(wellFormed(text)).replace(/[?#&+']/g, percent);

/** Maximum length of the written locations: each of thousands of templates can repeat a long handle. */
const MAX_XML_CHARS = 1024 * 1024;

/**
 * Writes locations as XML with templates filled in. URL values have `mode="legacy"` (recordings
 * "action=showurls …"). An XML comment states the number of omitted locations.
 */
export function* writeLocations(locations: readonly Location[], handle: string): Steps<string> {
  const forms = templateForms(handle);
  const elements: string[] = [];
  let chars = 0;
  for (const { attributes } of locations) {
    const element = yield* writeElement(attributes, forms);
    chars += element.length;
    if (chars > MAX_XML_CHARS) break;
    elements.push(element);
    yield;
  }
  const left = locations.length - elements.length;
  const remark = left === 0 ? '' : `<!-- ${left} more locations are left out: at most 1 MiB is shown -->\n`;
  return `<locations>\n${elements.join('')}${remark}</locations>\n`;
}

/** Omits `xmlns`, because in the XHTML or SVG namespace an `onfocus` attribute would run as a script. */
function* writeElement(attributes: Attributes, forms: TemplateForms): Steps<string> {
  const href = attributes.has('href') ? undefined : hrefOf(attributes, forms);
  const written: string[] = [];
  for (const [name, text] of [...attributes, ...(href === undefined ? [] : [['href', href] as const])]) {
    if (name === 'xmlns' || !/^[A-Za-z_][\w.-]*$/.test(name)) continue;
    written.push(`${name}="${yield* changeInPieces(text, escapeXml)}"`);
  }
  return `<location ${written.join(' ')}/>\n`;
}

/**
 * Escapes white space so that parsers preserve it, and replaces invalid characters with U+FFFD (XML 1.0
 * sections 2.2 and 3.3.3).
 */
const escapeXml = (text: string): string =>
  escapeText(text)
    .replace(/[\t\n\r]/g, (space) => `&#${space.charCodeAt(0)};`)
    .replace(/[^\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd');
