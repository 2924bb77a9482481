// Builds the typed links of FAIR Signposting (https://signposting.org/FAIR) for Link headers and link sets.
import type { Started } from '../../plugin.js';
import type { Host } from '../../host.js';
import { handleInUrl, handleToPath, upperAscii } from '../../handle/handle.js';
import type { HandleValue } from '../../handle/value.js';
import type { Steps } from '../../time-slicer.js';
import type { HeaderLine, ReadLinks } from '../../redirect/extension.js';
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
/** Half of the 8,000 characters that reverse proxies usually accept for all headers. */
const MAX_HEADER_CHARS = 4000;
const VALUES_PER_STEP = 50;

export const start = (_host: Host, settings: SignpostingConfig): Started => ({
  redirect: () => ({ readLinks: createSignposting(settings) }),
});

/** Creates the function that derives typed links; undefined without `signposting.publicUrl`. */
export function createSignposting({ signposting }: SignpostingConfig): ReadLinks | undefined {
  const { publicUrl, resolverUrl, types } = signposting;
  if (publicUrl === undefined) return undefined;
  const relations = new Map(types.map(([type, relation]) => [upperAscii(type), relation]));
  // Prefixes that start with `10.` belong to the DOI system (ISO 26324).
  const pidOf = (handle: string): string =>
    `${handle.startsWith('10.') ? 'https://doi.org' : resolverUrl}/${handleToPath(handle)}`;
  return function* readSignposts(values, { handle, target, headers }) {
    const path = handleToPath(handle);
    const urls = { page: `${publicUrl}/${path}`, record: `${publicUrl}/api/handles/${path}`, target };
    const found = [
      { href: pidOf(handle), rel: 'cite-as' },
      ...(yield* readLinkValues(values, relations, pidOf)),
    ];
    const taken = relationsIn(headers);
    const links = linksOf(found, urls).filter(({ rel }) => !taken.has(rel));
    const [first, ...others] = links.filter(({ anchor }) => anchor === (target ?? urls.page));
    const [json, text] = [LINKSET_JSON, LINKSET_TEXT].map((type) => {
      const format = type === LINKSET_JSON ? 'json' : 'text';
      return { href: `${urls.page}?action=linkset&format=${format}`, rel: 'linkset', type };
    });
    return {
      // Links on a redirect need an anchor, because a redirect represents no resource (RFC 8288 §3.2).
      onRedirect: () => linkHeader([first, json, ...others]),
      // The record page describes the target. Without a target, the page itself is the landing page.
      onPage() {
        const own = target === undefined ? [first, ...others] : [{ href: target, rel: 'describes' }];
        return linkHeader([json, text, ...own.map((link) => link && { ...link, anchor: undefined })]);
      },
      linkset: (contentType) =>
        contentType === LINKSET_TEXT ? `${links.map(writeLink).join(',\n')}\n` : writeLinkset(links),
    };
  };
}

/** Returns the relations of the links in headers. Generated links with the same relation are omitted. */
const relationsIn = (headers: readonly HeaderLine[]): Set<string> =>
  new Set(
    headers
      .flatMap(([, line]) => [...line.matchAll(/\brel="?([^";,]*)/gi)])
      .flatMap(([, rel = '']) => rel.toLowerCase().split(' ')),
  );

/** Returns a link for each typed value that is an http(s) URL or a handle. */
function* readLinkValues(
  values: readonly HandleValue[],
  relations: ReadonlyMap<string, string>,
  pidOf: (handle: string) => string,
): Steps<TypedLink[]> {
  const links: TypedLink[] = [];
  for (const [at, value] of values.entries()) {
    if (at % VALUES_PER_STEP === VALUES_PER_STEP - 1) yield;
    const rel = relations.get(upperAscii(value.type));
    const text = textOf(value);
    if (rel === undefined || text === undefined || text.length > MAX_URI_CHARS) continue;
    const href = linkTarget(text, pidOf);
    if (href !== undefined) links.push({ href, rel });
    if (links.length === MAX_LINKS) break;
  }
  return links;
}

function linkTarget(text: string, pidOf: (handle: string) => string): string | undefined {
  const plain = text.replace(/[\0-\x1f\x7f-\x9f]+/g, '').trim();
  const given = toRedirectUrl(plain, { allowedHosts: undefined });
  const handle = handleInUrl(plain);
  const href = given.ok ? given.url : /^\d+(?:\.[\w-]+)*\/\S/.test(handle) ? pidOf(handle) : '';
  return isWebUrl(href) ? href : undefined;
}

const isWebUrl = (url: string): boolean => url.length <= MAX_URI_CHARS && /^https?:/i.test(url);

/**
 * Returns the links of the FAIR profile for a landing page, its record and its items. Returns no links for a
 * target that is too long or not an http(s) URL.
 */
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

/** Writes a Link header, and omits links that would exceed its maximum length. */
function linkHeader(links: readonly (TypedLink | undefined)[]): HeaderLine[] {
  let header = '';
  for (const link of links.flatMap((each) => (each === undefined ? [] : [writeLink(each)]))) {
    const longer = header === '' ? link : `${header}, ${link}`;
    if (longer.length <= MAX_HEADER_CHARS) header = longer;
  }
  return header === '' ? [] : [['Link', header]];
}

/** Writes a link. URIs and media types contain no quotes or backslashes, so no escaping is needed. */
function writeLink({ href, ...link }: TypedLink): string {
  const names = ['rel', 'type', 'profile', 'anchor'] as const;
  const parameters = names.map((name) => (link[name] === undefined ? '' : `; ${name}="${link[name]}"`));
  return `<${href}>${parameters.join('')}`;
}

/** Writes a link set as JSON (RFC 9264 §4.2). Extension attributes are arrays (§4.2.4.3). */
function writeLinkset(links: readonly TypedLink[]): string {
  const contexts = new Map<string, Record<string, object[]>>();
  for (const { anchor = '', rel, href, type, profile } of links) {
    const context = contexts.get(anchor) ?? {};
    const target = { href, type, profile: profile === undefined ? undefined : [profile] };
    contexts.set(anchor, { ...context, [rel]: [...(context[rel] ?? []), target] });
  }
  return JSON.stringify({ linkset: [...contexts].map(([anchor, relations]) => ({ anchor, ...relations })) });
}
