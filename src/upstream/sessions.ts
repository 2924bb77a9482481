// Sessions of several Handle servers: session ids are marked with their server, so that no other server gets them.
import { createHash } from 'node:crypto';

export interface Sessions {
  /** The login to send to this server; undefined for the session of another server. */
  loginFor: (authorization: string | undefined) => string | undefined;
  /** Marks the session id in a `WWW-Authenticate` of this server, to which clients respond with that id. */
  challengeOf: (challenge: string) => string;
}

const HANDLE_SCHEME = /^\s*handle\b/i;
const NAMED = /sessionId/i;
const SESSION_ID = /\bsessionId\s*=\s*"?([^\s",]+)/gi;

/** The mark of an id. Ids of a Handle server have only letters and digits, so no `~`. */
const MARKED = /~[\w-]{8}$/;

/** The ids of `main`, which opens sessions, are not marked, so a single server sees no change. */
export const sessionsOf = (url: string, main: string | undefined): Sessions =>
  createSessions(url === main ? '' : `~${createHash('sha256').update(url).digest('base64url').slice(0, 8)}`);

function createSessions(mark: string): Sessions {
  const isOurs = (id: string): boolean => (mark === '' ? !MARKED.test(id) : id.endsWith(mark));
  return {
    loginFor(authorization) {
      if (authorization === undefined || !HANDLE_SCHEME.test(authorization) || !NAMED.test(authorization)) {
        return authorization;
      }
      const ids = [...authorization.matchAll(SESSION_ID)].map(([, id = '']) => id);
      if (ids.length === 0 || !ids.every(isOurs)) return undefined;
      return authorization.replace(SESSION_ID, (found) => found.slice(0, found.length - mark.length));
    },
    challengeOf: (challenge) => challenge.replace(SESSION_ID, `$&${mark}`),
  };
}
