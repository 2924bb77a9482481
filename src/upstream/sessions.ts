// Sessions of several Handle servers: session ids are marked with their server, so that no other server gets them.
import { createHash } from 'node:crypto';

export interface Sessions {
  /** The login to send to this server; undefined for the session of another server. */
  loginFor: (authorization: string | undefined) => string | undefined;
  /** The JSON body of a request to `/api/sessions` for this server; empty if it names the session of another server. */
  bodyFor: (body: Buffer) => Buffer;
  /** Marks the session id in a `WWW-Authenticate` of this server, to which clients respond with that id. */
  challengeOf: (challenge: string) => string;
}

const HANDLE_SCHEME = /^\s*handle\b/i;
const NAMED = /sessionId/i;
const SESSION_ID = /\bsessionId\s*=\s*"?([^\s",]+)/gi;
/** A Handle server reads JSON leniently: other quotes and `=`, too. */
const SESSION_ID_IN_JSON = /\bsessionId["']?\s*[:=]\s*["']?([^\s"',;}]+)/gi;

/** The mark of an id. Ids of a Handle server have only letters and digits, so no `~`. */
const MARKED = /~[\w-]{8}$/;

/** The ids of `main`, which opens sessions, are not marked, so a single server sees no change. */
export const sessionsOf = (url: string, main: string | undefined): Sessions =>
  createSessions(url === main ? '' : `~${createHash('sha256').update(url).digest('base64url').slice(0, 8)}`);

function createSessions(mark: string): Sessions {
  const isOurs = (id: string): boolean => (mark === '' ? !MARKED.test(id) : id.endsWith(mark));
  const idsIn = (text: string, pattern: RegExp): string[] =>
    [...text.matchAll(pattern)].map(([, id = '']) => id);
  return {
    loginFor(authorization) {
      if (authorization === undefined || !HANDLE_SCHEME.test(authorization) || !NAMED.test(authorization)) {
        return authorization;
      }
      const ids = idsIn(authorization, SESSION_ID);
      if (ids.length === 0 || !ids.every(isOurs)) return undefined;
      return authorization.replace(SESSION_ID, (found) => found.slice(0, found.length - mark.length));
    },
    bodyFor: (body) => (idsIn(body.toString(), SESSION_ID_IN_JSON).every(isOurs) ? body : Buffer.alloc(0)),
    challengeOf: (challenge) => challenge.replace(SESSION_ID, `$&${mark}`),
  };
}
