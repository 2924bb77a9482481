// Writes the locations of a record as XML, for `action=showurls`.
import { escapeText } from '../../html/html.js';
import type { Steps } from '../../time-slicer.js';
import type { Attributes, Location } from './location-list.js';
import { type TemplateForms, hrefOf, templateForms } from './template.js';
import { changeInPieces } from './text-pieces.js';

/** Beyond it a list is cut: templates can make a long handle out of each of thousands of locations. */
const MAX_CHARS = 1024 * 1024;

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
    if (chars > MAX_CHARS) break;
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
