// The handle that a browser's path means: without the forms in which people write handles as addresses.

/** Public resolvers whose address in front of a handle says nothing more than "this is a handle". */
const RESOLVER = /^https?:\/{1,2}(?:hdl\.handle\.net|(?:dx\.)?doi\.org)\//i;
const SCHEME = /^(?:info:(?:doi|hdl)\/|(?:urn:)?(?:doi|hdl):|urn:eidr:)/i;

/**
 * Reads a decoded path as HDLProxy does: leading slashes, space around and one prefix form are no part
 * of the handle; in a URN the first colon left stands for the slash (recordings "redirect: hdl: prefix"
 * to "leading spaces/trailing nbsp").
 *
 * @example handleInUrl('/urn:hdl:21.T1:abc') // '21.T1/abc'
 */
export function handleInUrl(path: string): string {
  const bare = path.replace(/^\/+/, '').trim().replace(RESOLVER, '');
  const scheme = SCHEME.exec(bare)?.[0];
  if (scheme === undefined) return bare;
  const handle = bare.slice(scheme.length);
  return scheme.toLowerCase().startsWith('urn:') ? handle.replace(':', '/') : handle;
}
