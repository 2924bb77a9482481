// Finds a record's redirect target: a location, or else a URL value; writes the locations for `action=showurls`. Pure.
import type { HandleValue } from '../../handle/value.js';
import { escapeText, shorten } from '../../html/html.js';
import {
  type ChosenTarget,
  type FoundTarget,
  type HeaderLine,
  NO_VARIATION,
} from '../../redirect/extension.js';
import type { RedirectQuery } from '../../redirect/request.js';
import { firstUrl, toRedirectUrl } from '../../redirect/target.js';
import type { Steps } from '../../time-slicer.js';
import {
  type Candidate,
  type Candidates,
  candidatesOf,
  type Choice,
  negotiatedAttributes,
  type NegotiationFacts,
  selectLocation,
  takesPart,
  variationOf,
  type WantedAttribute,
} from './select.js';
import { createSettings, type GatheredLists } from './gather.js';
import {
  type Attributes,
  changeInPieces,
  type HandleLists,
  isYes,
  type Location,
  type LocationList,
} from './location-list.js';
import { fillTemplate, hrefOf, percent, templateForms, type TemplateForms } from './template.js';

interface TargetRequest {
  handle: string;
  values: readonly HandleValue[];
  query: RedirectQuery;
  headers: NegotiationFacts;
  address: string;
  /** Looks up a country by address; undefined without `redirect.countryDatabase`. */
  countryOf: ((address: string) => string | undefined) | undefined;
  random: number;
}

/** `allowedHeaders`: lower-case names of the headers that 10320/headers may set. */
export function* findTarget(
  request: TargetRequest,
  gathered: GatheredLists,
  allowedHeaders: readonly string[],
): Steps<FoundTarget> {
  const { handle, values } = request;
  const forms = templateForms(handle);
  const headers = yield* responseHeaders(gathered, forms, allowedHeaders);
  if (!takesPart(gathered))
    return { chosen: firstUrl(values), status: 302, isRandom: false, variation: NO_VARIATION, headers };
  const candidates = yield* candidatesOf(gathered, values);
  const choice = yield* pickLocation(candidates, request);
  const chosen = choice && chosenBy(choice, candidates.locations, forms);
  const { location, isRandom = false } = (chosen && choice) ?? {};
  return {
    chosen,
    status: redirectStatus(location?.attributes.get('http_sc') ?? candidates.status),
    isRandom,
    variation: variationOf(candidates, {
      looksUpCountry: request.countryOf !== undefined && !request.query.parameters.has('country'),
    }),
    headers,
  };
}

function pickLocation(
  { locations, chooseBy, mayHave }: Candidates,
  { query: { parameters }, headers, address, countryOf, random }: TargetRequest,
): Steps<Choice | undefined> {
  // `metadata` counts as an action only, not as a parameter.
  const wantsMetadata = parameters.get('action')?.toLowerCase() === 'metadata';
  const wanted = [...readLocationAttributes(parameters), ...negotiatedAttributes(headers, wantsMetadata)];
  return selectLocation(locations, chooseBy, {
    attributes: wanted.filter(({ name, value }) => mayHave(name, value)),
    // `ip` replaces the client address in the country lookup.
    country: parameters.get('country') ?? countryOf?.(parameters.get('ip') ?? address),
    address,
    random,
  });
}

/** Returns undefined without an address (recording "loc xml: one location without href"). */
function chosenBy(
  choice: Choice,
  locations: readonly Candidate[],
  forms: TemplateForms,
): ChosenTarget | undefined {
  const { attributes, value } = choice.location;
  const text = hrefOf(attributes, forms);
  return text === undefined ? undefined : { text, value, reason: () => describeTarget(choice, locations) };
}

const REASONS: Record<Choice['by'], string> = {
  locatt: 'it has the requested attributes',
  accept: 'the Accept headers prefer it',
  address: 'it is for the address of the client',
  country: 'it is for the country of the client',
  score: 'it has the highest score',
  weight: 'it is the only one left with a weight',
  only: 'it is the only one',
};

/** Describes the choice. Readers count locations from one; the ids of a list usually begin with 0. */
function describeTarget({ location, by, isRandom }: Choice, locations: readonly Candidate[]): string {
  const { value } = location;
  const url = value && `the ${shorten(value.type)} value at index ${value.index}`;
  const count = locations.length;
  if (count === 1) return url === undefined ? 'The only location.' : `It is ${url}.`;
  const id = location.attributes.get('id');
  const place = `Location ${locations.indexOf(location) + 1} of ${count}`;
  const named = id === undefined ? place : `${place} (id ${shorten(id)})`;
  const reason = isRandom ? 'chosen at random by weight' : REASONS[by];
  return `${url === undefined ? named : `It is ${url}, one of ${count} locations`}: ${reason}.`;
}

/** Compares the text exactly, with no trimming (recording "http_sc=" 303" on the location"). */
const redirectStatus = (text: string | undefined): number =>
  text !== undefined && ['301', '302', '303', '307', '308'].includes(text) ? Number(text) : 302;

/** Maximum `locatt` parameters, because each is compared with every location. */
const MAX_LOCATION_ATTRIBUTES = 50;

/** Splits each attribute at its first colon and trims the name. Without a colon, any value matches. */
const readLocationAttributes = (parameters: URLSearchParams): WantedAttribute[] =>
  parameters
    .getAll('locatt')
    .slice(0, MAX_LOCATION_ATTRIBUTES)
    .map((pair) => {
      const [name = '', ...rest] = pair.split(':');
      return { name: name.trim(), value: rest.length === 0 ? undefined : rest.join(':'), by: 'locatt' };
    });

// Builds Link (RFC 8288) and other headers as HDLProxy does, for any selected location. Pure.

/** Maximum total length. Reverse proxies reject longer headers. */
const MAX_CHARS = 8000;
/** Maximum number of header lines and of links. Each link costs one or two URL parses. */
const MAX_LINES = 200;
/** Excludes text that cannot fit into `MAX_CHARS`. */
const isShort = (text: string): boolean => text.length <= MAX_CHARS;

/** Returns header lines, then 10320/links, then location links (recordings "links: …", "headers: …"). */
export function* responseHeaders(
  gathered: GatheredLists,
  forms: TemplateForms,
  allowed: readonly string[],
): Steps<HeaderLine[]> {
  const sources = headerSources(gathered);
  const texts = sources.flatMap(({ headers }) => headers);
  const lines = yield* headerLinesIn(texts, forms, allowed);
  const lists = [...sources.flatMap(({ links }) => links), ...sources.flatMap((source) => source.lists)];
  for (const [attributes, { anchors }] of linksIn(lists)) {
    const link = linkOf(attributes, forms, anchors);
    if (link !== undefined) lines.push(['Link', link]);
    yield;
  }
  return withinBound(lines);
}

/** Returns own lists, included ones from the deepest up, and those of the prefix unless suppressed. */
function headerSources({ own, included, prefix, prefixIncluded }: GatheredLists): HandleLists[] {
  const record = [own, ...included.toReversed().flat()];
  const settings = createSettings([...own.lists, ...included.flat().flatMap(({ lists }) => lists)]);
  const hasLocal = own.links.length > 0 || own.headers.length > 0;
  const refusesPrefix =
    isYes(settings('suppressNsHeaders')) || (hasLocal && isYes(settings('suppressNsHeadersIfLocalHeaders')));
  return refusesPrefix ? record : [...record, ...prefix, ...prefixIncluded.toReversed().flat()];
}

function withinBound(lines: readonly HeaderLine[]): HeaderLine[] {
  let chars = 0;
  return lines.filter(([name, value]) => {
    const length = name.length + value.length;
    if (chars + length > MAX_CHARS) return false;
    chars += length;
    return true;
  });
}

const TOKEN = /^[!#$%&'*+.^_`|~\dA-Za-z-]+$/;

const MAX_TEXT_CHARS = 64 * 1024;
const LINES_PER_STEP = 50;

/**
 * Parses one `Name: value` header per line and fills in the handle. Sends only `allowed` headers; HDLProxy
 * sends all, even Set-Cookie and a second Location. Omits lines for the HTML head, which could run scripts.
 */
function* headerLinesIn(
  texts: readonly string[],
  forms: TemplateForms,
  allowed: readonly string[],
): Steps<HeaderLine[]> {
  const lines: HeaderLine[] = [];
  for (const text of texts) {
    let count = 0;
    for (const { 0: line, index } of text.matchAll(/[^\r\n]+/g)) {
      if (index > MAX_TEXT_CHARS || lines.length === MAX_LINES) break;
      const header = isShort(line) ? readHeaderLine(line, forms, allowed) : undefined;
      if (header !== undefined) lines.push(header);
      if (++count % LINES_PER_STEP === 0) yield;
    }
    yield;
  }
  return lines;
}

function readHeaderLine(
  line: string,
  forms: TemplateForms,
  allowed: readonly string[],
): HeaderLine | undefined {
  const colon = line.indexOf(':');
  const name = line.slice(0, Math.max(0, colon)).trim();
  if (!TOKEN.test(name) || !allowed.includes(name.toLowerCase())) return undefined;
  const value = fillTemplate(line.slice(colon + 1).trim(), forms);
  return value !== undefined && /^[\x20-\x7e]*$/.test(value) ? [name, value] : undefined;
}

/** Returns the first `MAX_LINES` locations with a `rel`, each with its list. */
function linksIn(lists: readonly LocationList[]): [Attributes, LocationList][] {
  const found: [Attributes, LocationList][] = [];
  for (const list of lists) {
    if (!list.texts.has('rel')) continue;
    for (const { attributes } of list.locations) {
      if (found.length === MAX_LINES) return found;
      if (attributes.has('rel') && [...attributes.values()].every(isShort)) found.push([attributes, list]);
    }
  }
  return found;
}

/** Link parameters and their source attributes, in HDLProxy's order (recording "link: every attribute"). */
const PARAMETERS: readonly (readonly [name: string, attribute: string])[] = [
  ['rel', 'rel'],
  ['type', 'media-type'],
  ['target-type', 'target-type'],
  ['media', 'media'],
  ['hreflang', 'hreflang'],
];

/** Returns undefined if the address is not a valid redirect target. `anchors`: those in the location's list. */
function linkOf(
  attributes: Attributes,
  forms: TemplateForms,
  anchors: LocationList['anchors'],
): string | undefined {
  const target = targetOf(attributes, forms);
  if (target === undefined) return undefined;
  const parameters = PARAMETERS.map(([name, attribute]) => parameter(name, attributes.get(attribute)));
  return [
    `<${target}>`,
    anchorOf(attributes, forms, anchors),
    ...parameters,
    titleOf(attributes.get('title'), attributes.get('titlelang')),
  ]
    .filter((part) => part !== undefined)
    .join('; ');
}

function targetOf(attributes: Attributes, forms: TemplateForms): string | undefined {
  const url = toRedirectUrl(hrefOf(attributes, forms) ?? '', { allowedHosts: undefined });
  return url.ok ? url.url : undefined;
}

/** Resolves `anchor-id` to a location that has a `rel`. */
function anchorOf(
  attributes: Attributes,
  forms: TemplateForms,
  anchors: LocationList['anchors'],
): string | undefined {
  const given = attributes.get('anchor');
  const id = attributes.get('anchor-id');
  const named = id === undefined ? undefined : anchors.get(id);
  const anchor = given === undefined ? named : new Map([['href', given]]);
  return anchor && parameter('anchor', targetOf(anchor, forms));
}

/** Writes a quoted string (RFC 9110 §5.6.4); in HDLProxy, a quote in `rel` ends the parameter. */
function parameter(name: string, value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  return `${name}="${toAscii(value).replace(/["\\]/g, '\\$&')}"`;
}

const toAscii = (text: string): string => text.replace(/[^\x20-\x7e]/g, '');

/** Writes a title with a language or non-ASCII characters in the extended form (RFC 8187). */
function titleOf(title: string | undefined, language: string | undefined): string | undefined {
  if (title === undefined) return undefined;
  if (language === undefined && /^[\x20-\x7e]*$/.test(title)) return parameter('title', title);
  const encoded = encodeURIComponent(title.toWellFormed()).replace(/['()*]/g, percent);
  return `title*=UTF-8'${(language ?? '').replace(/[^A-Za-z0-9-]/g, '')}'${encoded}`;
}

/** Maximum length of the written locations: each of thousands of templates can repeat a long handle. */
const MAX_XML_CHARS = 1024 * 1024;

/** Writes all possible targets of a handle as XML; undefined if there is none. */
export function* writeCandidates(
  gathered: GatheredLists,
  { handle, values }: { handle: string; values: readonly HandleValue[] },
): Steps<string | undefined> {
  const { locations } = yield* candidatesOf(gathered, values);
  return locations.length === 0 ? undefined : yield* writeLocations(locations, handle);
}

/** Writes XML with filled templates; URL values have `mode="legacy"` (recordings "action=showurls …"). */
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

/** Preserves white space, and replaces invalid characters with U+FFFD (XML 1.0 §2.2, §3.3.3). */
const escapeXml = (text: string): string =>
  escapeText(text)
    .replace(/[\t\n\r]/g, (space) => `&#${space.charCodeAt(0)};`)
    .replace(/[^\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd');
