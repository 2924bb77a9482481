// Finds the redirect target of a record by its URL values, and makes any target a URL that is safe in a Location header.
import { domainToASCII } from 'node:url';
import { ServiceError } from '../errors.js';
import { canParseUrl, hasShortHost } from '../handle/url.js';
import type { HandleValue } from '../handle/value.js';
import {
  type ChosenTarget,
  type FoundTarget,
  NO_VARIATION,
  type RedirectTarget,
  type RedirectUrl,
} from './extension.js';
import type { RedirectQuery } from './request.js';
import { hasUrl, isUrl, isUrlSubtype, textOf } from './values.js';

/** Returns the target of a record by its URL values alone. */
export const plainTarget = (values: readonly HandleValue[]): FoundTarget => ({
  chosen: hasUrl(values) ? firstUrl(values) : undefined,
  status: 302,
  isRandom: false,
  variation: NO_VARIATION,
  headers: [],
});

/** Returns the first URL value in record order, or else the first URL subtype. */
export function firstUrl(values: readonly HandleValue[]): ChosenTarget | undefined {
  const isUsable = (value: HandleValue): boolean => (textOf(value) ?? '').trim() !== '';
  const value =
    values.find((each) => isUrl(each) && isUsable(each)) ??
    values.find((each) => isUrlSubtype(each) && isUsable(each));
  return value && { text: textOf(value) ?? '', value };
}

/** Appends `urlappend` and makes the target a URL. @throws ServiceError BAD_PARAMETER if that changes the host */
export function completeTarget(
  { chosen, ...target }: FoundTarget,
  { urlAppend }: RedirectQuery,
  rules: UrlRules,
): RedirectTarget {
  if (chosen === undefined) return { ...target, chosen, url: undefined };
  const text = appendToUrl(chosen.text, urlAppend);
  if (text === undefined)
    throw new ServiceError('BAD_PARAMETER', { detail: 'urlappend changes the host of the URL' });
  return { ...target, chosen: { ...chosen, text }, url: toRedirectUrl(text, rules) };
}

interface UrlRules {
  /** Host names, or `*.example.org` for subdomains; undefined allows any host. */
  allowedHosts?: readonly string[] | undefined;
}

/** Maximum URL length. Clients and proxies reject longer headers. */
const MAX_URL_CHARS = 8000;

const SCHEMES: readonly string[] = ['http', 'https', 'ftp', 'mailto'];

/** Unlike HDLProxy, allows only http, https, ftp and mailto: `javascript:` and `data:` URLs could run scripts. */
export function toRedirectUrl(value: string, { allowedHosts }: UrlRules): RedirectUrl {
  const trimmed = value.trim();
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(trimmed)?.[1]?.toLowerCase() ?? '';
  if (!SCHEMES.includes(scheme)) return { ok: false, problem: 'scheme' };
  // Checked before escaping to bound its cost, and again afterwards because escapes lengthen the URL.
  if (trimmed.length > MAX_URL_CHARS) return { ok: false, problem: 'too-long' };
  const url = escapeUnsafe(scheme === 'mailto' ? trimmed : withAsciiHost(trimmed));
  const problem = scheme === 'mailto' ? problemOfMail(url) : problemOfHost(url, allowedHosts);
  if (problem !== undefined) return { ok: false, problem };
  return url.length > MAX_URL_CHARS ? { ok: false, problem: 'too-long' } : { ok: true, url };
}

const problemOfMail = (url: string) => (URL.canParse(url) ? undefined : 'malformed');

function problemOfHost(
  url: string,
  allowedHosts: UrlRules['allowedHosts'],
): 'malformed' | 'host' | undefined {
  if (!/^[a-z]+:\/\/[^/?#]/i.test(url) || !canParseUrl(url)) return 'malformed';
  if (allowedHosts === undefined) return undefined;
  const host = new URL(url).hostname.replace(/\.$/, '');
  const matchesHost = (allowed: string): boolean =>
    allowed.startsWith('*.') ? host.endsWith(allowed.slice(1)) && !host.startsWith('.') : host === allowed;
  return allowedHosts.some(matchesHost) ? undefined : 'host';
}

/**
 * Percent-encodes characters that RFC 3986 forbids in URLs, including line breaks, which could inject headers. Leaves
 * existing escapes unchanged (recordings "unicode in URL value", "spaces and quotes in URL value").
 */
export const escapeUnsafe = (text: string): string =>
  text.toWellFormed().replace(/[^!#-;=?-[\]_a-z~]+/g, encodeURIComponent);

/** Converts an internationalised host name to its ASCII form (RFC 5890). */
function withAsciiHost(url: string): string {
  const [whole = '', before = '', host = ''] = /^([a-z]+:\/\/(?:[^/?#@]*@)?)([^/?#:@]*)/i.exec(url) ?? [];
  if (/^[\x21-\x7e]*$/.test(host) || !hasShortHost(url)) return url;
  return before + domainToASCII(host) + url.slice(whole.length);
}

/** Appends text to a URL; undefined if this changes the origin, as `.evil.org` after `https://example.org` does. */
export function appendToUrl(value: string, text: string): string | undefined {
  const base = value.trim();
  const whole = base + text;
  // Skips the comparison if the origin cannot change or toRedirectUrl will reject the length.
  if (text === '' || base.length > MAX_URL_CHARS || /^mailto:/i.test(base)) return whole;
  return urlOrigin(base) === urlOrigin(whole) ? whole : undefined;
}

function urlOrigin(url: string): string | undefined {
  const escaped = escapeUnsafe(withAsciiHost(url));
  if (!canParseUrl(escaped)) return undefined;
  const { protocol, username, password, host } = new URL(escaped);
  return [protocol, username, password, host].join(' ');
}
