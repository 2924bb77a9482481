// Session ids are routed to the Handle server that issued them.
import { describe, expect, it } from 'vitest';
import { sessionsOf } from '../../src/upstream/sessions.js';

const [A, B, C] = ['https://a.example', 'https://b.example', 'https://c.example'] as const;
const main = sessionsOf(A, A);
const other = sessionsOf(B, A);

const idIn = (challenge: string): string => /sessionId="([^"]*)"/.exec(challenge)?.[1] ?? '';
const CHALLENGE = 'Basic realm="handle", Handle sessionId="node01x", nonce="bm9uY2U="';

describe('main server', () => {
  it('issues unmodified ids and receives them', () => {
    expect(main.challengeOf(CHALLENGE)).toBe(CHALLENGE);
    expect(main.loginFor('Handle sessionId="node01x"')).toBe('Handle sessionId="node01x"');
  });

  it('receives no id issued by a different server', () => {
    expect(main.loginFor(`Handle sessionId="${idIn(other.challengeOf(CHALLENGE))}"`)).toBeUndefined();
  });
});

describe('JSON body', () => {
  const marked = idIn(other.challengeOf(CHALLENGE));

  it.each([
    '',
    '{}',
    '{"sessionId":"node01x","id":"300:21.T1/USER~12345678"}',
    '{"cnonce":"YQ==","alg":"sessionId"}',
    'no JSON',
  ])('is forwarded unchanged when it contains no foreign session: %s', (text) => {
    expect(main.bodyFor(Buffer.from(text)).toString()).toBe(text);
  });

  it.each(['{"sessionId":"%"}', '{ "a": 1, "sessionId" : "%" }', "{'sessionId':'%'}", '{sessionId=%;id=a}'])(
    'is emptied when it contains a foreign session: %s',
    (text) => {
      expect(main.bodyFor(Buffer.from(text.replace('%', marked))).length).toBe(0);
    },
  );
});

describe('additional server', () => {
  const marked = idIn(other.challengeOf(CHALLENGE));

  it.each([
    ['Handle sessionId="%"', 'Handle sessionId="node01x"'],
    [
      'handle version="0", sessionId = %, cnonce="YQ=="',
      'handle version="0", sessionId = node01x, cnonce="YQ=="',
    ],
    ['HANDLE SESSIONID="%"', 'HANDLE SESSIONID="node01x"'],
  ])('receives its id as issued: %j', (login, sent) => {
    expect(other.loginFor(login.replace('%', marked))).toBe(sent);
  });

  it.each([
    'Handle sessionId="node01x"',
    'Handle sessionId=node01x',
    'Handle sessionId=" node01x"',
    `Handle sessionId="${marked}", sessionId="node01x"`,
    'Handle sessionId="", sessionId="node01x"',
    `Handle sessionId="${idIn(sessionsOf(C, A).challengeOf(CHALLENGE))}"`,
  ])('receives no id that it did not issue: %s', (login) => {
    expect(other.loginFor(login)).toBeUndefined();
  });

  it.each(['Basic eDp5', 'Bearer abc', 'Handle clientCert="true"', 'Handle sessionId=""', undefined])(
    'receives a login that has no session: %s',
    (login) => {
      expect(other.loginFor(login)).toBe(login);
    },
  );
});
