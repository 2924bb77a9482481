// Sessions of the demo server.
import { expect, test } from 'vitest';
import { SessionStore } from '../../src/dev-server/login.js';

const HALF_AN_HOUR = 30 * 60_000;

test('a session ends after half an hour without use', () => {
  let now = 1_000_000;
  const session = { sessionId: 'S', nonce: 'N', identity: undefined };
  const random = { session: () => session, suffix: () => '' };
  const sessions = new SessionStore({ now: () => now, random });
  sessions.create();
  for (let times = 0; times < 2; times++) {
    now += HALF_AN_HOUR - 1;
    expect(sessions.get('S')).toBe(session);
  }
  now += HALF_AN_HOUR + 1;
  expect(sessions.get('S')).toBeUndefined();
});
