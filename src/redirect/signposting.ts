// The typed links of FAIR Signposting (https://signposting.org/FAIR) that a record gives, in `Link` headers and link sets. Pure.
import type { Config } from '../config/schema.js';
import { handleInUrl, handleToPath, upperAscii } from '../handle/handle.js';
import type { HandleValue } from '../handle/value.js';
import type { Steps } from '../time-slicer.js';
import type { HeaderLine } from './locations/response-headers.js';
import { toRedirectUrl } from './redirect-url.js';
import { textOf } from './values.js';

/** A link; URIs and media types have neither quotes nor backslashes. */
export interface TypedLink {
  href: string;
  rel: string;
  type?: string | undefined;
  /** URI of the format of the target. */
  profile?: string | undefined;
  /** The context; undefined for the URL of the response. */
  anchor?: string | undefined;
}

interface SignpostedRecord {
  handle: string;
  /** The URL to which the handle redirects; undefined when it opens the record page. */
  target: string | undefined;
  /** Headers that the record sets itself. Their links replace those of the same relation. */
  headers: readonly HeaderLine[];
}

export interface Signposts {
  /** The `Link` header of a redirect, and that of the record page. */
  onRedirect: () => HeaderLine[];
  onPage: () => HeaderLine[];
  linkset: (contentType: string) => string;
}

/** Reads the signposts of a record from its values. */
export type Signposting = (values: readonly HandleValue[], record: SignpostedRecord) => Steps<Signposts>;

/** Maximum links from values. Real records have fewer than ten. */
const MAX_LINKS = 100;
const MAX_URI_CHARS = 2000;
/** Web servers in front reject more than 8,000 characters for all headers. */
const MAX_HEADER_CHARS = 4000;
const VALUES_PER_STEP = 50;

export const LINKSET_JSON = 'application/linkset+json';
export const LINKSET_TEXT = 'application/linkset';

/** Undefined when signposting is off. */
export function createSignposting({ signposting }: Pick<Config, 'signposting'>): Signposting | undefined {
  const { publicUrl, resolverUrl, types } = signposting;
  if (publicUrl === undefined) return undefined;
  const relations = new Map(types.map(([type, relation]) => [upperAscii(type), relation]));
  // The prefix `10.` belongs to the DOI system (ISO 26324).
  const pidOf = (handle: string): string =>
    `${handle.startsWith('10.') ? 'https://doi.org' : resolverUrl}/${handleToPath(handle)}`;
  return function* readSignposts(values, { handle, target, headers }) {
    const path = handleToPath(handle);
    const page = `${publicUrl}/${path}`;
    const record = `${publicUrl}/api/handles/${path}`;
    const taken = relationsIn(headers);
    const found = yield* readLinks(values, relations, pidOf);
    const links = landingLinks(found, { page, record, pid: pidOf(handle), target });
    const free = links.filter(({ rel }) => !taken.has(rel));
    const toSets = [
      { href: `${page}?action=linkset&format=json`, rel: 'linkset', type: LINKSET_JSON },
      { href: `${page}?action=linkset&format=text`, rel: 'linkset', type: LINKSET_TEXT },
    ];
    return {
      // Links of a redirect have an anchor, because it represents no resource (RFC 8288 §3.2).
      onRedirect: () => linkHeader([...free.slice(0, 1), ...toSets.slice(0, 1), ...free.slice(1)]),
      // The page is metadata of the target, else itself the landing page.
      onPage() {
        const own = target === undefined ? free : [{ href: target, rel: 'describes' }];
        return linkHeader([...toSets, ...own.map((link) => ({ ...link, anchor: undefined }))]);
      },
      linkset(contentType) {
        const all = [...free, ...linksToLanding(links, record).filter(({ rel }) => !taken.has(rel))];
        return contentType === LINKSET_TEXT ? `${all.map(writeLink).join(',\n')}\n` : writeJson(all);
      },
    };
  };
}

/** The relations of the links in headers. */
const relationsIn = (headers: readonly HeaderLine[]): Set<string> =>
  new Set(
    headers
      .flatMap(([, line]) => [...line.matchAll(/\brel="?([^";,]*)/gi)])
      .flatMap(([, rel = '']) => rel.toLowerCase().split(' ')),
  );

type FoundLink = Partial<TypedLink>;

/** Reads values that are an http(s) URL or a handle as links; a media type is the `type` without `href`. */
function* readLinks(
  values: readonly HandleValue[],
  relations: ReadonlyMap<string, string>,
  pidOf: (handle: string) => string,
): Steps<FoundLink[]> {
  const links: FoundLink[] = [];
  for (const [at, value] of values.entries()) {
    if (at % VALUES_PER_STEP === VALUES_PER_STEP - 1) yield;
    const rel = relations.get(upperAscii(value.type));
    const text = textOf(value);
    if (rel === undefined || text === undefined || text.length > MAX_URI_CHARS) continue;
    const href = hrefOf(text, pidOf);
    if (href !== undefined) links.push({ href, rel });
    else if (rel === 'type' && /^[a-z]+\/[\w.+-]{1,100}$/i.test(text)) links.push({ type: text });
    if (links.length === MAX_LINKS) break;
  }
  return links;
}

function hrefOf(text: string, pidOf: (handle: string) => string): string | undefined {
  const plain = text.replace(/[\0-\x1f\x7f-\x9f]+/g, '').trim();
  const given = toRedirectUrl(plain, { allowedHosts: undefined });
  const handle = handleInUrl(plain);
  const href = given.ok ? given.url : /^\d+(?:\.[\w-]+)*\/\S/.test(handle) ? pidOf(handle) : '';
  return isWebUrl(href) ? href : undefined;
}

const isWebUrl = (url: string): boolean => url.length <= MAX_URI_CHARS && /^https?:/i.test(url);

/** The links of a landing page in the FAIR profile; none for a target that is no http(s) URL or too long. */
function landingLinks(
  found: readonly FoundLink[],
  { page, record, pid, target }: { page: string; record: string; pid: string; target: string | undefined },
): (TypedLink & { anchor: string })[] {
  if (target !== undefined && !isWebUrl(target)) return [];
  const all = (rel: string): TypedLink[] =>
    found.flatMap((link) => (link.rel === rel && link.href !== undefined ? [{ href: link.href, rel }] : []));
  const first = (rel: string): TypedLink[] => all(rel).slice(0, 1);
  const items = all('item');
  // With several items the media type could be that of any of them.
  const type = items.length === 1 ? found.find(({ href }) => href === undefined)?.type : undefined;
  return [
    { href: pid, rel: 'cite-as' },
    ...first('type'),
    ...(target === undefined ? [{ href: 'https://schema.org/AboutPage', rel: 'type' }] : []),
    // SPDX names licences without the ending of their page.
    ...first('license').map(({ href, rel }) => ({
      href: href.replace(/(\/spdx\.org\/.*)\.html$/, '$1'),
      rel,
    })),
    { href: record, rel: 'describedby', type: 'application/json', profile: all('profile')[0]?.href },
    ...['describedby', 'author', 'describes', 'collection'].flatMap(all),
    ...items.map((link) => ({ ...link, type })),
  ].map((link) => ({ ...link, anchor: target ?? page }));
}

/** The links from the record and the items back to the landing page. */
function linksToLanding(links: ReturnType<typeof landingLinks>, record: string): TypedLink[] {
  const items = links.filter(({ rel }) => rel === 'item');
  return [
    ...links.slice(0, 1).map(({ anchor }) => ({ href: anchor, rel: 'describes', anchor: record })),
    ...items.map(({ anchor, href }) => ({
      href: anchor,
      rel: 'collection',
      type: 'text/html',
      anchor: href,
    })),
  ];
}

/** Leaves out links that would make the header too long. */
function linkHeader(links: readonly TypedLink[]): HeaderLine[] {
  let header = '';
  for (const link of links.map(writeLink)) {
    const longer = header === '' ? link : `${header}, ${link}`;
    if (longer.length <= MAX_HEADER_CHARS) header = longer;
  }
  return header === '' ? [] : [['Link', header]];
}

function writeLink({ href, ...link }: TypedLink): string {
  const names = ['rel', 'type', 'profile', 'anchor'] as const;
  const parameters = names.map((name) => (link[name] === undefined ? '' : `; ${name}="${link[name]}"`));
  return `<${href}>${parameters.join('')}`;
}

/** RFC 9264 §4.2; extension attributes are arrays (§4.2.4.3). */
function writeJson(links: readonly TypedLink[]): string {
  const contexts = new Map<string, Record<string, object[]>>();
  for (const { anchor = '', rel, href, type, profile } of links) {
    const context = contexts.get(anchor) ?? {};
    const target = { href, type, profile: profile === undefined ? undefined : [profile] };
    contexts.set(anchor, { ...context, [rel]: [...(context[rel] ?? []), target] });
  }
  return JSON.stringify({ linkset: [...contexts].map(([anchor, relations]) => ({ anchor, ...relations })) });
}
