// Makes a value of a record a URL that is safe in a Location header.
import { domainToASCII } from 'node:url';

export type RedirectUrl =
  { ok: true; url: string } | { ok: false; problem: 'scheme' | 'malformed' | 'too-long' | 'host' };

interface UrlRules {
  /** Host names, or `*.example.org` for its subdomains; undefined allows any host. */
  allowedHosts?: readonly string[] | undefined;
}

/** Clients and proxies do not accept longer headers. */
const MAX_URL_CHARS = 8000;

const SCHEMES: readonly string[] = ['http', 'https', 'ftp', 'mailto'];

/**
 * Unlike HDLProxy, allows only http, https, ftp and mailto: with `javascript:` or `data:` the author of a
 * record could run scripts in the browsers of its readers.
 */
export function toRedirectUrl(value: string, { allowedHosts }: UrlRules): RedirectUrl {
  const trimmed = value.trim();
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(trimmed)?.[1]?.toLowerCase() ?? '';
  if (!SCHEMES.includes(scheme)) return { ok: false, problem: 'scheme' };
  // Checked before the escapes, which make the text longer, and again after them.
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
  if (!/^[a-z]+:\/\/[^/?#]/i.test(url) || !URL.canParse(url)) return 'malformed';
  if (allowedHosts === undefined) return undefined;
  const host = new URL(url).hostname.replace(/\.$/, '');
  const matches = (allowed: string): boolean =>
    allowed.startsWith('*.') ? host.endsWith(allowed.slice(1)) && !host.startsWith('.') : host === allowed;
  return allowedHosts.some(matches) ? undefined : 'host';
}

/**
 * Percent-encodes characters that RFC 3986 does not allow in a URL. Line ends are encoded, so a value cannot add
 * a header. Escapes in the value stay (recordings "unicode in URL value", "spaces and quotes in URL value").
 */
export const escapeUnsafe = (text: string): string =>
  text.replace(/[^\x21-\x7e]+|["<>\\^`{|}]/g, (unsafe) => {
    const bytes = Buffer.from(unsafe, 'utf8').toString('hex').toUpperCase();
    return bytes.replace(/../g, '%$&');
  });

/** Writes an internationalised host name in its ASCII form (RFC 5890). */
function withAsciiHost(url: string): string {
  const [whole = '', before = '', host = ''] = /^([a-z]+:\/\/(?:[^/?#@]*@)?)([^/?#:@]*)/i.exec(url) ?? [];
  if (/^[\x21-\x7e]*$/.test(host)) return url;
  return before + domainToASCII(host) + url.slice(whole.length);
}

/**
 * Appends a text to a URL; undefined when the result has another origin: HDLProxy makes `https://example.org`
 * and `.evil.org` one host name.
 */
export function appendToUrl(value: string, text: string): string | undefined {
  const base = value.trim();
  const whole = base + text;
  // Origins are compared only if they can differ and toRedirectUrl will not refuse the length.
  if (text === '' || base.length > MAX_URL_CHARS || /^mailto:/i.test(base)) return whole;
  return originOf(base) === originOf(whole) ? whole : undefined;
}

function originOf(url: string): string | undefined {
  const escaped = escapeUnsafe(withAsciiHost(url));
  if (!URL.canParse(escaped)) return undefined;
  const { protocol, username, password, host } = new URL(escaped);
  return [protocol, username, password, host].join(' ');
}
