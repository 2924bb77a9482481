// Marks session ids with their Handle server, so that no other server receives them.
import { createHash } from 'node:crypto';

export type Sessions = ReturnType<typeof sessionsOf>;

const HANDLE_SCHEME = /^\s*handle\b/i;
const NAMED = /sessionId/i;
const SESSION_ID = /\bsessionId\s*=\s*"?([^\s",]+)/gi;
/** Matches a session without an id, which is an error at a Handle server. */
const EMPTY_SESSION = /^\s*handle\s+sessionId\s*=\s*""\s*$/i;
/** Handle servers parse JSON leniently: they accept single quotes, unquoted names and `=`. */
const SESSION_ID_IN_JSON = /\bsessionId["']?\s*[:=]\s*["']?([^\s"',;}]+)/gi;

/** Matches a marked id. Handle servers generate ids from letters and digits only, never `~`. */
const MARKED = /~[\w-]{8}$/;

/** Creates the sessions of a server. The ids of `main`, which opens sessions, remain unmarked. */
export function sessionsOf(url: string, main: string | undefined) {
  const mark = url === main ? '' : `~${createHash('sha256').update(url).digest('base64url').slice(0, 8)}`;
  const isOurs = (id: string): boolean => (mark === '' ? !MARKED.test(id) : id.endsWith(mark));
  const idsIn = (text: string, pattern: RegExp): string[] =>
    [...text.matchAll(pattern)].map(([, id = '']) => id);
  return {
    /** Returns the login to send to this server; undefined for a different server's session. */
    loginFor(authorization: string | undefined): string | undefined {
      if (authorization === undefined || !HANDLE_SCHEME.test(authorization) || !NAMED.test(authorization))
        return authorization;
      if (EMPTY_SESSION.test(authorization)) return authorization;
      const ids = idsIn(authorization, SESSION_ID);
      if (ids.length === 0 || !ids.every(isOurs)) return undefined;
      return authorization.replace(SESSION_ID, (found) => found.slice(0, found.length - mark.length));
    },
    /** Returns the request body for `/api/sessions`; empty if it names a different server's session. */
    bodyFor: (body: Buffer): Buffer =>
      idsIn(body.toString(), SESSION_ID_IN_JSON).every(isOurs) ? body : Buffer.alloc(0),
    /** Marks the session id in a `WWW-Authenticate` challenge; clients respond with the marked id. */
    challengeOf: (challenge: string): string => challenge.replace(SESSION_ID, `$&${mark}`),
  };
}
