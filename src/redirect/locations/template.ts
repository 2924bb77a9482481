// The address of a location: `href`, or `href_template` with the handle filled in; the XML of `action=showurls`.
import { escapeText } from '../../html/html.js';
import type { Steps } from '../../time-slicer.js';
import type { Attributes, Location } from './location-list.js';
import { changeInPieces } from './scan.js';

/** Clients and proxies do not accept longer headers. */
const MAX_FILLED_CHARS = 8000;

/** A handle as templates name it; made once for a request, because a list may hold thousands of templates. */
export interface TemplateForms {
  /** `{hdl}`: as one component of a URL. */
  component: string;
  /** `{hdl:path}`: keeps what a path may hold. */
  path: string;
}

export const templateForms = (handle: string): TemplateForms => ({
  component: encodeComponent(handle),
  path: encodePath(handle),
});

/**
 * Undefined for a location without an address. An `href` is never filled in, and wins also when it is empty (recordings
 * "template: …").
 */
export function hrefOf(attributes: ReadonlyMap<string, string>, forms: TemplateForms): string | undefined {
  return attributes.get('href') ?? fillTemplate(attributes.get('href_template'), forms);
}

/** Others stay as they are. A template may repeat a long handle: undefined when that becomes too long. */
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

/** Lone surrogates become U+FFFD. */
export const wellFormed = (text: string): string => Buffer.from(text).toString();

const percent = (char: string): string => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;

/** Java's form encoding without `+`: of the marks only `*`, `-`, `.` and `_` stay. */
const encodeComponent = (text: string): string =>
  encodeURIComponent(wellFormed(text)).replace(/[!'()~]/g, percent);

/** Keeps `/ ~ ! * ( ) : @ $ = ; ,`. */
const encodePath = (text: string): string => encodeURI(wellFormed(text)).replace(/[?#&+']/g, percent);

/** Beyond it a list is cut: templates can make a long handle out of each of thousands of locations. */
const MAX_XML_CHARS = 1024 * 1024;

/**
 * With the handle filled into templates. URL values have `mode="legacy"` (recordings "action=showurls …"). A comment says
 * how many locations are left out.
 */
export function* writeLocations(
  locations: readonly Pick<Location, 'attributes'>[],
  handle: string,
): Steps<string> {
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

/** Without namespaces: in that of XHTML or SVG an element with `onfocus` runs as a script. */
function* writeElement(attributes: Attributes, forms: TemplateForms): Steps<string> {
  const href = attributes.has('href') ? undefined : hrefOf(attributes, forms);
  const written: string[] = [];
  for (const [name, text] of [...attributes, ...(href === undefined ? [] : [['href', href] as const])]) {
    if (name === 'xmlns' || !/^[A-Za-z_][\w.-]*$/.test(name)) continue;
    written.push(`${name}="${yield* changeInPieces(text, escapeXml)}"`);
  }
  return `<location ${written.join(' ')}/>\n`;
}

/** Keeps line ends; what XML does not allow becomes U+FFFD (XML 1.0 sections 2.2 and 3.3.3). */
const escapeXml = (text: string): string =>
  escapeText(text)
    .replace(/[\t\n\r]/g, (space) => `&#${space.charCodeAt(0)};`)
    .replace(/[^\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd');
