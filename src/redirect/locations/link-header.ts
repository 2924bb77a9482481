// The Link header of a location with `rel` (RFC 8288), as HDLProxy writes it.
import { toRedirectUrl } from '../redirect-url.js';
import type { Attributes, LocationList } from './location-list.js';
import { type TemplateForms, hrefOf, wellFormed } from './template.js';

interface LinkContext {
  forms: TemplateForms;
  /** Of the same list. */
  anchors: LocationList['anchors'];
}

/** Parameters with the attributes that hold them, in the order of HDLProxy (recording "link: every attribute"). */
const PARAMETERS: readonly (readonly [name: string, attribute: string])[] = [
  ['rel', 'rel'],
  ['type', 'media-type'],
  ['target-type', 'target-type'],
  ['media', 'media'],
  ['hreflang', 'hreflang'],
];

/** Undefined without `rel`, and for an address that is not redirected to either. */
export function linkOf(attributes: Attributes, context: LinkContext): string | undefined {
  if (!attributes.has('rel')) return undefined;
  const target = targetOf(attributes, context.forms);
  if (target === undefined) return undefined;
  const parameters = PARAMETERS.map(([name, attribute]) => parameter(name, attributes.get(attribute)));
  return [
    `<${target}>`,
    anchorOf(attributes, context),
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

/** `anchor-id` names another location that has a `rel` itself. */
function anchorOf(attributes: Attributes, { forms, anchors }: LinkContext): string | undefined {
  const given = attributes.get('anchor');
  const id = attributes.get('anchor-id');
  const named = id === undefined ? undefined : anchors.get(id);
  const anchor = given === undefined ? named : new Map([['href', given]]);
  return anchor && parameter('anchor', targetOf(anchor, forms));
}

/** A quoted string (RFC 9110 section 5.6.4): HDLProxy writes `rel` as it is, so a quote in it ends the header. */
function parameter(name: string, value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  return `${name}="${toAscii(value).replace(/["\\]/g, '\\$&')}"`;
}

const toAscii = (text: string): string => text.replace(/[^\x20-\x7e]/g, '');

/** The extended form (RFC 8187) for a language and for other characters than ASCII. */
function titleOf(title: string | undefined, language: string | undefined): string | undefined {
  if (title === undefined) return undefined;
  if (language === undefined && /^[\x20-\x7e]*$/.test(title)) return parameter('title', title);
  const encoded = encodeURIComponent(wellFormed(title)).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `title*=UTF-8'${(language ?? '').replace(/[^A-Za-z0-9-]/g, '')}'${encoded}`;
}
