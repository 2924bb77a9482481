// Content negotiation as HDLProxy does it: Accept and Accept-Language become further `locatt` parameters. Pure.

/** An attribute that locations should have, and why. Without a value the attribute itself is enough. */
export interface WantedAttribute {
  name: string;
  value: string | undefined;
  by: 'locatt' | 'accept';
}

export interface NegotiationFacts {
  accept: string | undefined;
  acceptLanguage: string | undefined;
  userAgent: string | undefined;
  /** `action=metadata`. */
  wantsMetadata: boolean;
}

interface WeightedEntry {
  name: string;
  quality: number;
}

/** Each entry is compared with every location. */
const MAX_ENTRIES = 50;

/** The attributes in the order in which they narrow the list (recordings "Accept: …", "Accept-Language: …"). */
export function negotiatedAttributes(facts: NegotiationFacts): WantedAttribute[] {
  const languages = sortByQuality(readEntries(facts.acceptLanguage)).map(({ name }) => `language:${name}`);
  const types = attributesOfAccept(readEntries(facts.accept), facts.userAgent);
  const kept = facts.wantsMetadata
    ? ['role:metadata', ...types.filter((type) => !type.startsWith('http_role:'))]
    : types;
  return [...kept, ...languages].map((pair) => {
    const colon = pair.indexOf(':');
    return { name: pair.slice(0, colon), value: pair.slice(colon + 1), by: 'accept' };
  });
}

const HTML = ['ctype:text/html', 'media-type:text/html'];

function attributesOfAccept(entries: WeightedEntry[], userAgent: string | undefined): string[] {
  if (entries.every(({ name }) => name === '*/*')) {
    return /^(?:mozilla|opera)\//i.test(userAgent ?? '')
      ? ['http_role:browser', ...HTML]
      : ['http_role:no_conneg'];
  }
  const best = (some: WeightedEntry[]): number => Math.max(0, ...some.map(({ quality }) => quality));
  if (best(entries.filter(isBrowserType)) === best(entries)) {
    const acceptsHtml = entries.some(({ name }) => ['text/html', 'text/*', '*/*'].includes(name));
    return ['http_role:browser', ...(acceptsHtml ? HTML : [])];
  }
  const sorted = sortByQuality(entries);
  const wildcard = sorted.findIndex(({ name }) => name.includes('*'));
  const types = wildcard === -1 ? sorted : sorted.slice(0, wildcard);
  return [...types.flatMap(({ name }) => [`ctype:${name}`, `media-type:${name}`]), 'http_role:conneg'];
}

const BROWSER_TYPES: readonly string[] = [
  'text/html',
  'text/xhtml',
  'application/xhtml+xml',
  'application/pdf',
  'application/vnd.wap.xhtml+xml',
  'text/vnd.wap.wml',
];

const isBrowserType = ({ name }: WeightedEntry): boolean =>
  BROWSER_TYPES.includes(name) || /^(?:image|audio|video)\/|\*/.test(name);

/** Empty for an absent header. An empty header is one entry, and commas alone are none, as Java splits them. */
function readEntries(header: string | undefined): WeightedEntry[] {
  if (header === undefined) return [];
  const entries = header.split(',');
  while (entries.length > 0 && header !== '' && entries.at(-1) === '') entries.pop();
  return entries.slice(0, MAX_ENTRIES).map((entry) => {
    const [name = '', ...parameters] = entry.split(';').map((piece) => piece.trim().toLowerCase());
    const text = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    const quality = text === undefined || text === '' ? 1 : Number(text);
    return { name, quality: Number.isNaN(quality) ? 1 : quality };
  });
}

/** Stable: entries of the same quality keep their order. */
const sortByQuality = (entries: readonly WeightedEntry[]): WeightedEntry[] =>
  [...entries].sort((one, other) => other.quality - one.quality);
