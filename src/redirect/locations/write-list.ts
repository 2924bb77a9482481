// Writes the locations of a record as XML, for `action=showurls`.
import { escapeText } from '../../html/html.js';
import type { Location } from './location-list.js';
import { hrefOf } from './template.js';

/** With the handle filled into templates. URL values have `mode="legacy"` (recordings "action=showurls …"). */
export function writeLocations(locations: readonly Location[], handle: string): string {
  const elements = locations.map(({ attributes }) => {
    const href = hrefOf(attributes, handle);
    return writeElement([
      ...attributes,
      ...(attributes.has('href') || href === undefined ? [] : [['href', href] as const]),
    ]);
  });
  return `<locations>\n${elements.join('')}</locations>\n`;
}

/** Without namespaces: in that of XHTML or SVG an element with `onfocus` runs as a script. */
function writeElement(attributes: readonly (readonly [name: string, text: string])[]): string {
  const written = attributes
    .filter(([name]) => /^[A-Za-z_][\w.-]*$/.test(name) && name !== 'xmlns')
    .map(([name, text]) => `${name}="${escapeXml(text)}"`);
  return `<location ${written.join(' ')}/>\n`;
}

/** Keeps line ends; what XML does not allow becomes U+FFFD (XML 1.0 sections 2.2 and 3.3.3). */
const escapeXml = (text: string): string =>
  escapeText(text)
    .replace(/[\t\n\r]/g, (space) => `&#${space.charCodeAt(0)};`)
    .replace(/[^\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd');
