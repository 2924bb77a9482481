// Sessions of several Handle servers: the id that a server gives out is marked with its server, and sent to no other.
import { createHash } from 'node:crypto';

export interface Sessions {
  /** A login as this server gets it; undefined for the session of another server. */
  loginFor: (authorization: string | undefined) => string | undefined;
  /** A JSON body for `/api/sessions` as this server gets it; empty for the session of another server. */
  bodyFor: (body: Buffer) => Buffer;
  /** A `WWW-Authenticate` of this server as clients get it: they answer it under the id in it. */
  challengeOf: (challenge: string) => string;
}

const HANDLE_SCHEME = /^\s*handle\b/i;
const NAMED = /sessionId/i;
const SESSION_ID = /\bsessionId\s*=\s*"?([^\s",]+)/gi;
/** A Handle server reads JSON leniently: other quotes and `=`, too. */
const SESSION_ID_IN_JSON = /\bsessionId["']?\s*[:=]\s*["']?([^\s"',;}]+)/gi;

/** `~` is in no id of a Handle server, which are letters and digits. */
const MARKED = /~[\w-]{8}$/;

/** The ids of `main`, which opens sessions, stay as they are: where it is the only server nothing changes. */
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
