// Media types that a client prefers (RFC 9110 §12.5.1), at a bounded cost.
import Negotiator from 'negotiator';

/** Maximum length read of Accept, which may fill the head of a request. Those of browsers have under 200 characters. */
const MAX_ACCEPT_CHARS = 1000;

/** Returns the reader of Accept. An entry beyond the maximum length counts as absent, and so do all after it. */
export function negotiatorOf(accept: string | undefined): Negotiator {
  if (accept === undefined || accept.length <= MAX_ACCEPT_CHARS)
    return new Negotiator({ headers: { accept } });
  const end = Math.max(0, accept.lastIndexOf(',', MAX_ACCEPT_CHARS));
  return new Negotiator({ headers: { accept: accept.slice(0, end) } });
}
