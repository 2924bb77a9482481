// The headers of a forwarded request: framing by the buffered body, hop-by-hop headers, client addresses.
import { describe, expect, test } from 'vitest';
import { type ClientRequestHead, forwardedHeaders } from '../../src/upstream/forwarding/forwarded-headers.js';

const head = (changes: Partial<ClientRequestHead> = {}): ClientRequestHead => ({
  method: 'PUT',
  httpVersion: '1.1',
  headers: {},
  peer: { address: '192.0.2.1', isTrusted: false },
  ...changes,
});
const HOP = {
  host: 'upstream.example:8000',
  pseudonym: 'us',
  bodyBytes: 0,
  withCredentials: true,
  requestId: 'ours',
};
const sent = (changes: Partial<ClientRequestHead>, bodyBytes = 0) =>
  forwardedHeaders(head(changes), { ...HOP, bodyBytes });

/** Headers that the proxy adds to a request without headers. */
const BARE = {
  host: HOP.host,
  via: '1.1 us',
  'x-request-id': 'ours',
  'x-forwarded-for': '192.0.2.1',
  'x-forwarded-port': '80',
  'x-forwarded-proto': 'http',
};

describe('forwarded framing', () => {
  test.each([
    ['PUT', 0, '0'],
    ['POST', 0, '0'],
    ['GET', 0, undefined],
    ['HEAD', 0, undefined],
    ['DELETE', 0, undefined],
    ['OPTIONS', 0, undefined],
    ['PUT', 12, '12'],
    ['GET', 12, '12'],
    ['DELETE', 12, '12'],
  ])('matches the body of a %s with %i bytes', (method, bytes, expected) => {
    const claimed = { 'content-length': '99', 'transfer-encoding': 'chunked', trailer: 'a', te: 'trailers' };
    for (const headers of [{}, claimed, { ...claimed, connection: 'content-length, transfer-encoding' }]) {
      const length = expected === undefined ? {} : { 'content-length': expected };
      expect(sent({ method, headers: { ...headers, expect: '100-continue' } }, bytes)).toEqual({
        ...BARE,
        ...length,
      });
    }
  });

  test.each(['content_length', 'transfer_encoding', 'Content_Length'.toLowerCase()])(
    'ignores the alternative spelling %s',
    (name) => {
      expect(sent({ method: 'GET', headers: { [name]: '5' } })).toEqual(BARE);
    },
  );
});

describe('Connection header', () => {
  test('removes the headers it names', () => {
    const headers = { connection: 'X-Mine ,keep-alive', 'x-mine': '1', 'keep-alive': '2', 'x-kept': '3' };
    expect(sent({ method: 'GET', headers })).toEqual({ ...BARE, 'x-kept': '3' });
  });

  test('preserves Authorization and X-Forwarded-* even if it names them', () => {
    const connection = 'authorization, COOKIE, host, via, x-forwarded-for, x-forwarded-host, content-length';
    const headers = { connection, authorization: 'Basic x', cookie: 'a=b', via: '1.0 before', host: 'me:8' };
    expect(sent({ method: 'PUT', headers }, 3)).toEqual({
      ...BARE,
      authorization: 'Basic x',
      cookie: 'a=b',
      via: '1.0 before, 1.1 us',
      'content-length': '3',
      'x-forwarded-host': 'me:8',
      'x-forwarded-port': '8',
    });
  });
});

describe('forwarded client address headers', () => {
  const claims = {
    'x-forwarded-for': '198.51.100.1, 198.51.100.2',
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'a.example',
    'x-forwarded-server': 'a',
    forwarded: 'for=198.51.100.1',
    'x-real-ip': '198.51.100.1',
    'cf-connecting-ip': '198.51.100.1',
    'client-cert': ':AA==:',
  };

  test('are removed for an untrusted client', () => {
    expect(sent({ method: 'GET', headers: claims })).toEqual(BARE);
  });

  test('are preserved and extended for a trusted client', () => {
    const peer = { address: '2001:db8::1', isTrusted: true };
    expect(sent({ method: 'GET', headers: { ...claims, host: 'b.example' }, peer })).toEqual({
      ...BARE,
      ...claims,
      'x-forwarded-for': '198.51.100.1, 198.51.100.2, 2001:db8::1',
      'x-forwarded-proto': 'https, http',
      forwarded: 'for=198.51.100.1, for="[2001:db8::1]"',
    });
  });

  test('omit Forwarded when a trusted proxy sent none', () => {
    const peer = { address: '192.0.2.9', isTrusted: true };
    expect(sent({ method: 'GET', peer })).toEqual({ ...BARE, 'x-forwarded-for': '192.0.2.9' });
  });
});
