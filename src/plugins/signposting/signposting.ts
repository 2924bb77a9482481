// Builds the typed links of FAIR Signposting (https://signposting.org/FAIR) for Link headers and link sets.
import type { Started } from '../../plugin.js';
import type { Host } from '../../host.js';
import { handleInUrl, handleToPath, upperAscii } from '../../handle/handle.js';
import type { HandleValue } from '../../handle/value.js';
import { groupsOf } from '../../time-slicer.js';
import type { HeaderLine, LinkedRecord, ReadLinks, RecordLinks } from '../../redirect/extension.js';
import { type ParsedLink, parseLinks, relationsOf } from '../../redirect/link-header.js';
import { LINKSET_JSON, LINKSET_TEXT } from '../../redirect/request.js';
import { toRedirectUrl } from '../../redirect/target.js';
import { textOf } from '../../redirect/values.js';
import type { SignpostingConfig } from './plugin.js';

interface TypedLink {
  href: string;
  rel: string;
  type?: string | undefined;
  /** URI of the target's format. */
  profile?: string | undefined;
  /** URL of the link context; undefined for the response's own URL. */
  anchor?: string | undefined;
}

/** Maximum links from values; real records have fewer than ten. */
const MAX_LINKS = 100;
const MAX_URI_CHARS = 2000;
const VALUES_PER_STEP = 50;
/** Maximum length of the links of a link set: each of a thousand short links may need a long anchor. */
const MAX_LINKSET_CHARS = 256 * 1024;
/** Maximum attributes per link of a link set, because JSON repeats them for each relation. RFC 8288 defines six. */
const MAX_ATTRIBUTES = 20;

export const start = (_host: Host, settings: SignpostingConfig): Started => ({
  redirect: () => ({ readLinks: createSignposting(settings) }),
});

/**
 * Returns the persistent URI of a handle, which outlives this proxy: at the resolver of the DOI system, to which
 * prefixes that start with `10.` belong (ISO 26324), or at that of the Handle System.
 */
const pidOf = (handle: string): string =>
  `https://${handle.startsWith('10.') ? 'doi.org' : 'hdl.handle.net'}/${handleToPath(handle)}`;

/** Creates the function that derives typed links. */
export function createSignposting({ signposting: { publicUrl = '', types } }: SignpostingConfig): ReadLinks {
  const relations = new Map(types.map(([type, relation]) => [upperAscii(type), relation]));
  return function* readSignposts(values, record) {
    const links: TypedLink[] = [{ href: pidOf(record.handle), rel: 'cite-as' }];
    for (const some of groupsOf(values, VALUES_PER_STEP)) {
      if (links.length <= MAX_LINKS) links.push(...some.flatMap((value) => readLink(value, relations) ?? []));
      yield;
    }
    return linksOfRecord(links.slice(0, 1 + MAX_LINKS), record, publicUrl);
  };
}

/** Returns the link of a typed value that is an http(s) URL or a handle. */
function readLink(value: HandleValue, relations: ReadonlyMap<string, string>): TypedLink | undefined {
  const rel = relations.get(upperAscii(value.type));
  const text = textOf(value);
  if (rel === undefined || text === undefined || text.length > MAX_URI_CHARS) return undefined;
  const href = linkTarget(text);
  return href === undefined ? undefined : { href, rel };
}

function linkTarget(text: string): string | undefined {
  const plain = text.replace(/[\0-\x1f\x7f-\x9f]+/g, '').trim();
  const given = toRedirectUrl(plain, { allowedHosts: undefined });
  const handle = handleInUrl(plain);
  const href = given.ok ? given.url : /^\d+(?:\.[\w-]+)*\/\S/.test(handle) ? pidOf(handle) : '';
  return isWebUrl(href) ? href : undefined;
}

const isWebUrl = (url: string): boolean => url.length <= MAX_URI_CHARS && /^https?:/i.test(url);

/** `found`: the links of the record's values, and its persistent URI. */
function linksOfRecord(
  found: readonly TypedLink[],
  { handle, target, headers }: LinkedRecord,
  publicUrl: string,
): RecordLinks {
  const path = handleToPath(handle);
  const urls = { page: `${publicUrl}/${path}`, record: `${publicUrl}/api/handles/${path}`, target };
  const own = headers.flatMap(([name, value]) => (name.toLowerCase() === 'link' ? parseLinks(value) : []));
  // Generated links with the same relation are omitted.
  const taken = new Set(own.flatMap(relationsOf));
  const links = linksOf(found, urls).filter(({ rel }) => !taken.has(rel));
  const landing = target ?? urls.page;
  const shown = links.filter(({ anchor }) => anchor === landing);
  const linksets = `${urls.page}?action=linkset&format=`;
  const json = { href: `${linksets}json`, rel: 'linkset', type: LINKSET_JSON };
  const text = { href: `${linksets}text`, rel: 'linkset', type: LINKSET_TEXT };
  return {
    // Links on a redirect need an anchor, because a redirect represents no resource (RFC 8288 §3.2).
    onRedirect: () => linkLines([json, ...shown]),
    // The record page describes the target. Without a target, the page itself is the landing page.
    onPage() {
      const ofPage = target === undefined ? shown : [{ href: target, rel: 'describes' }];
      return linkLines([json, text, ...ofPage.map((link) => ({ ...link, anchor: undefined }))]);
    },
    linkset(contentType) {
      const all = takeFirstLinks([...links.map(writeLink), ...own.map((link) => withAnchor(link, landing))]);
      return contentType === LINKSET_TEXT ? `${all.join(',\n')}\n` : writeLinkset(all.flatMap(parseLinks));
    },
  };
}

function takeFirstLinks(links: readonly string[]): string[] {
  let left = MAX_LINKSET_CHARS;
  return links.filter(({ length }) => (left -= length) >= 0);
}

/** Writes a link of the record; a link set has no URL that could be the default anchor (RFC 9264 §4.1). */
const withAnchor = ({ text, parameters }: ParsedLink, anchor: string): string =>
  parameters.has('anchor') ? text : `${text}; anchor="${anchor}"`;

/** Returns the links of the FAIR profile for a landing page, its record and its items. */
function linksOf(
  found: readonly TypedLink[],
  { page, record, target }: { page: string; record: string; target: string | undefined },
): TypedLink[] {
  if (target !== undefined && !isWebUrl(target)) return [];
  const anchor = target ?? page;
  const all = (name: string): TypedLink[] => found.filter(({ rel }) => rel === name);
  const first = (name: string): TypedLink[] => all(name).slice(0, 1);
  const [format] = all('profile');
  return [
    ...[...first('cite-as'), ...first('type')],
    ...(target === undefined ? [{ href: 'https://schema.org/AboutPage', rel: 'type' }] : []),
    // SPDX license URIs omit the `.html` of the license page.
    ...first('license').map(({ href, rel }) => ({ href: href.replace(SPDX_PAGE, '$1'), rel })),
    { href: record, rel: 'describedby', type: 'application/json', profile: format?.href },
    ...['describedby', 'author', 'describes', 'collection', 'item'].flatMap(all),
    { href: anchor, rel: 'describes', anchor: record },
    ...all('item').map(({ href }) => ({ href: anchor, rel: 'collection', type: 'text/html', anchor: href })),
  ].map((link) => ({ anchor, ...link }));
}

const SPDX_PAGE = /(\/spdx\.org\/.*)\.html$/;

const linkLines = (links: readonly TypedLink[]): HeaderLine[] =>
  links.map((link) => ['Link', writeLink(link)]);

/** Writes a link. URIs and media types contain no quotes or backslashes, so no escaping is needed. */
function writeLink({ href, ...link }: TypedLink): string {
  const names = ['rel', 'type', 'profile', 'anchor'] as const;
  const parameters = names.map((name) => (link[name] === undefined ? '' : `; ${name}="${link[name]}"`));
  return `<${href}>${parameters.join('')}`;
}

/** Writes a link set as JSON (RFC 9264 §4.2). */
function writeLinkset(links: readonly ParsedLink[]): string {
  const contexts = new Map<string, Map<string, object[]>>();
  for (const link of links) {
    const anchor = link.parameters.get('anchor') ?? '';
    const context = contexts.get(anchor) ?? new Map<string, object[]>();
    contexts.set(anchor, context);
    const target = { href: link.href, ...linksetAttributes(link) };
    // The member `anchor` of a context is no relation.
    for (const relation of relationsOf(link).filter((name) => name !== 'anchor')) {
      const targets = context.get(relation);
      if (targets === undefined) context.set(relation, [target]);
      else targets.push(target);
    }
  }
  const linkset = [...contexts].map(([anchor, relations]) =>
    Object.fromEntries<unknown>([['anchor', anchor], ...relations]),
  );
  return JSON.stringify({ linkset });
}

/** Attributes with one text; all others are lists (RFC 9264 §4.2.4). */
const SINGLE_ATTRIBUTES = ['media', 'title', 'type'];

function linksetAttributes({ parameters }: ParsedLink): Record<string, unknown> {
  const attributes = [...parameters]
    .filter(([name]) => !['rel', 'rev', 'anchor', 'href'].includes(name))
    .slice(0, MAX_ATTRIBUTES);
  const written = attributes.map(([name, value]): [string, unknown] => {
    if (SINGLE_ATTRIBUTES.includes(name)) return [name, value];
    return [name, [name.endsWith('*') ? decodeExtended(value) : value]];
  });
  return Object.fromEntries<unknown>(written);
}

/** Decodes an extended value (RFC 8187), such as `UTF-8'de'%C3%84`. */
function decodeExtended(text: string): object {
  const [, language = '', encoded = text] = /^UTF-8'([^']*)'(.*)$/i.exec(text) ?? [];
  const value = Buffer.from(
    encoded.replace(/%([\da-f]{2})/gi, (_all, hex: string) => String.fromCharCode(parseInt(hex, 16))),
    'latin1',
  ).toString();
  return language === '' ? { value } : { value, language };
}
