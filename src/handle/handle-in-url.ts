// The handle in a URI or in the URL of a public resolver, as HDLProxy reads it.

/** Resolvers whose URL may stand before a handle. */
const RESOLVER = /^https?:\/{1,2}(?:hdl\.handle\.net|(?:dx\.)?doi\.org)\//i;
const SCHEME = /^(?:info:(?:doi|hdl)\/|(?:urn:)?(?:doi|hdl):|urn:eidr:)/i;

/**
 * Removes leading slashes, surrounding space and one prefix form from a decoded path. In a URN a colon before the first
 * slash stands for it (recordings "redirect: hdl: prefix" to "leading spaces/trailing nbsp"; HDLProxy 9.3.1 resolves
 * `urn:hdl:21.T11998/uc:a@x`).
 *
 * @example handleInUrl('/urn:hdl:21.T1:abc') // '21.T1/abc'
 */
export function handleInUrl(path: string): string {
  const bare = trimCopied(path.replace(/^\/+/, '')).replace(RESOLVER, '');
  const scheme = SCHEME.exec(bare)?.[0];
  if (scheme === undefined) return bare;
  const handle = bare.slice(scheme.length);
  return scheme.toLowerCase().startsWith('urn:') ? handle.replace(/^([^/:]*):/, '$1/') : handle;
}

/** Not with a regular expression: `/\/+$/` takes quadratic time on a text of slashes that ends with something else. */
export function withoutSlashesAtEnd(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === '/') end--;
  return text.slice(0, end);
}

const ZERO_WIDTH_SPACE = '\u200B';

/** Copying from a page or a PDF leaves a zero-width space behind a handle, which `trim` takes for a character. */
function trimCopied(text: string): string {
  let end = text.length;
  while (end > 0 && (text[end - 1] === ZERO_WIDTH_SPACE || text[end - 1]?.trim() === '')) end--;
  return text.slice(0, end).trim();
}
