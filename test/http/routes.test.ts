// Each request that has no prepared response is handled by one Express route, whatever its interface.
import { Router } from 'express';
import nock from 'nock';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { nativeRequest } from '../support/native-messages.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { HANDLE, PATH, UPSTREAM_URL, mockUpstream } from '../support/upstream.js';

useNock();

beforeEach(() => {
  mockUpstream();
  nock(UPSTREAM_URL).put(/./).optionally().reply(201, { responseCode: 1, handle: HANDLE });
});

const MESSAGE = 'application/x-hdl-message';
const RULES = { TRAFFIC_RULES: JSON.stringify([{ name: 'all', match: {}, class: 'normal' }]) };

const message = {
  body: nativeRequest(HANDLE),
  headers: { Accept: MESSAGE, 'Content-Type': MESSAGE },
};

describe('Express router', () => {
  test.each<[string, string, string, object, number]>([
    ['GET', PATH, 'a record', {}, 200],
    ['GET', `/${HANDLE}`, 'a redirect', {}, 302],
    ['POST', `/${HANDLE}`, 'a posted redirect', {}, 302],
    ['POST', '/api/resolve', 'a batch', { body: JSON.stringify({ handles: [HANDLE] }) }, 200],
    ['POST', '/', 'a native message', message, 200],
    ['OPTIONS', PATH, 'a preflight', {}, 200],
    ['OPTIONS', '*', 'OPTIONS of the server', {}, 200],
    ['GET', '/robots.txt', 'a file', {}, 200],
    ['GET', '/api/nothing', 'an unknown path', {}, 404],
    ['GET', '/api/handles#x', 'a path with a fragment', {}, 404],
    ['GET', `http://x:y/api/handles/${HANDLE}`, 'an absolute target without a valid host', {}, 200],
    ['PATCH', '/api/site', 'an unknown method', {}, 501],
    ['DELETE', '/api/site', 'an unsupported method', {}, 405],
    ['PUT', PATH, 'a write', { body: '[]', headers: { Authorization: 'Basic eDp5' } }, 201],
    ['GET', '/api/v2/handles/21.T11998/abc', 'ePIC v2', {}, 401],
    ['GET', '/openapi.json', 'the API description', {}, 200],
  ])('handles %s %s (%s)', async (method, target, _what, question, status) => {
    const entries = vi.spyOn(Router.prototype as unknown as { handle: () => void }, 'handle');
    const proxy = await startProxy(RULES);
    expect((await proxy.ask(target, { method, ...question })).status).toBe(status);
    expect(entries).toHaveBeenCalledOnce();
  });
});
