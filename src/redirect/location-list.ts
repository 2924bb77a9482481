// `action=showurls`: every place a record knows, as XML.
import { escapeText } from '../html/html.js';
import type { Location, ReadLocations } from './locations.js';
import type { HandleValue } from '../handle/value.js';
import { upperAscii } from '../handle/handle.js';
import { isOfType, textOf } from './values.js';

/** Plain URLs are listed too, as `mode="legacy"` (recordings "action=showurls …"). */
export function locationList(
  values: readonly HandleValue[],
  { handle, readLocations }: { handle: string; readLocations: ReadLocations },
): string {
  const located = values
    .filter((value) => isOfType(value, '10320/LOC'))
    .flatMap((value) => readLocations(textOf(value) ?? '', handle)?.locations ?? []);
  const weight = located.length === 0 ? '1.0' : '0.0';
  const plain = values.filter(
    ({ type }) => upperAscii(type) === 'URL' || upperAscii(type).startsWith('URL.'),
  );
  const lines = [
    ...located.map(({ attributes }) => elementOf(attributes)),
    ...plain.map((value) =>
      elementOf(
        new Map([
          ['mode', 'legacy'],
          ['weight', weight],
          ['href', textOf(value) ?? ''],
        ]),
      ),
    ),
  ];
  return `<locations>\n${lines.map((line) => `${line}\n`).join('')}</locations>\n`;
}

function elementOf(attributes: Location['attributes']): string {
  const written = [...attributes]
    .filter(([name]) => !isOfNamespace(name))
    .map(([name, text]) => `${name}="${escapeXml(text)}"`);
  return `<location ${written.join(' ')}/>`;
}

/** In the namespace of XHTML or SVG an element with `onfocus` is a script in whoever's browser shows the list. */
const isOfNamespace = (name: string): boolean => name.includes(':') || name === 'xmlns';

/** Line ends stay what they are, and what XML has no place for becomes U+FFFD (XML 1.0 sections 2.2, 3.3.3). */
const escapeXml = (text: string): string =>
  escapeText(text)
    .replace(/[\t\n\r]/g, (space) => `&#${space.charCodeAt(0)};`)
    .replace(/[^\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd');
