// URLs that a record or a server names: whether they are parsed, and whether they are web addresses.

/** Maximum length of a host name (RFC 1035 §2.3.4). */
const MAX_HOST_CHARS = 253;

/** Whether the host, with port and escapes, is short enough: converting a long one to ASCII takes quadratic time. */
export function hasShortHost(url: string): boolean {
  const authority = /^[a-z][a-z\d+.-]*:[/\\\s]*([^/?#]*)/i.exec(url)?.[1];
  return authority !== undefined && authority.length - authority.lastIndexOf('@') - 1 <= MAX_HOST_CHARS;
}

/** Whether text from elsewhere is an absolute URL with a host, at a bounded cost. */
export const canParseUrl = (url: string): boolean => hasShortHost(url) && URL.canParse(url);

/** Whether text is an absolute http(s) URL. */
export const isWebAddress = (text: string): boolean =>
  /^https?:\/\/[^/\s]/i.test(text) && !/\p{Cc}/u.test(text) && canParseUrl(text);
