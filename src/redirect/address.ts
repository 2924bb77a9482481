// Addresses that may be redirected to, written so that they can stand in a header.
import { domainToASCII } from 'node:url';

export type Address =
  { ok: true; url: string } | { ok: false; problem: 'scheme' | 'malformed' | 'too-long' | 'host' };

export interface AddressRules {
  /** Host names, `*.example.org` for all below it; undefined: any host. */
  allowedHosts: readonly string[] | undefined;
}

/** Longer ones do not fit what clients and proxies take for a header. */
const MAX_CHARS = 8000;

/**
 * Makes a `Location` of a value, other than HDLProxy for http, https, ftp and mailto only: a redirect
 * to `javascript:` or `data:` would hand a reader over to whoever may write a record.
 */
export function toAddress(value: string, { allowedHosts }: AddressRules): Address {
  const trimmed = value.trim();
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(trimmed)?.[1]?.toLowerCase();
  // Before anything is done with it: what is written anew gets longer.
  if (trimmed.length > MAX_CHARS) return { ok: false, problem: isOpened(scheme) ? 'too-long' : 'scheme' };
  if (scheme === 'mailto') return toMailAddress(escapeUnsafe(trimmed));
  if (!isOpened(scheme)) return { ok: false, problem: 'scheme' };
  const url = escapeUnsafe(withAsciiHost(trimmed));
  const host = hostOf(url);
  if (host === undefined) return { ok: false, problem: 'malformed' };
  if (allowedHosts !== undefined && !isAllowed(host, allowedHosts)) return { ok: false, problem: 'host' };
  return bounded(url);
}

const isOpened = (scheme = ''): boolean => ['http', 'https', 'ftp', 'mailto'].includes(scheme);

const toMailAddress = (url: string): Address =>
  URL.canParse(url) ? bounded(url) : { ok: false, problem: 'malformed' };

const bounded = (url: string): Address =>
  url.length > MAX_CHARS ? { ok: false, problem: 'too-long' } : { ok: true, url };

/**
 * What RFC 3986 does not allow in a URL is percent-encoded as UTF-8; line ends and other control
 * characters are among it, so that no value can write a header of its own. What is encoded already
 * stays (recordings "unicode in URL value", "spaces and quotes in URL value").
 */
export const escapeUnsafe = (text: string): string =>
  text.replace(/[^\x21-\x7e]+|["<>\\^`{|}]/g, (unsafe) => {
    const bytes = Buffer.from(unsafe, 'utf8').toString('hex').toUpperCase();
    return bytes.replace(/../g, '%$&');
  });

/** A host name beyond ASCII is written in its ASCII form (RFC 5890). */
function withAsciiHost(url: string): string {
  const [whole = '', before = '', host = ''] = /^([a-z]+:\/\/(?:[^/?#@]*@)?)([^/?#:@]*)/i.exec(url) ?? [];
  if (/^[\x21-\x7e]*$/.test(host)) return url;
  return before + domainToASCII(host) + url.slice(whole.length);
}

/** The host as a browser reads it, or undefined when it would not go there. */
function hostOf(url: string): string | undefined {
  if (!/^[a-z]+:\/\/[^/?#]/i.test(url) || !URL.canParse(url)) return undefined;
  return new URL(url).hostname.replace(/\.$/, '');
}

const isAllowed = (host: string, allowedHosts: readonly string[]): boolean =>
  allowedHosts.some((allowed) =>
    allowed.startsWith('*.') ? host.endsWith(allowed.slice(1)) && !host.startsWith('.') : host === allowed,
  );

/**
 * Puts a text behind an address as it stands, or undefined when that would lead to another host: HDLProxy
 * makes `https://example.org` and `.evil.org` one name.
 */
export function append(value: string, text: string): string | undefined {
  const base = value.trim();
  const whole = base + text;
  // It will not be gone to.
  if (base.length > MAX_CHARS) return whole;
  if (text === '' || base.toLowerCase().startsWith('mailto:')) return whole;
  return originOf(base) === originOf(whole) ? whole : undefined;
}

function originOf(url: string): string | undefined {
  const written = escapeUnsafe(withAsciiHost(url));
  if (!URL.canParse(written)) return undefined;
  const { protocol, username, password, host } = new URL(written);
  return [protocol, username, password, host].join(' ');
}
