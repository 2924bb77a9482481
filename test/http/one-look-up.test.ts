// Each request that the fast read path does not serve is looked up once in the route table, and enters
// Express only if its route requires it.
import express from 'express';
import nock from 'nock';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { RouteTable } from '../../src/http/route-table.js';
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

describe('route table lookup', () => {
  test.each<[string, string, string, object, number, number]>([
    ['GET', `/${HANDLE}`, 'a redirect', {}, 302, 0],
    ['POST', '/api/resolve', 'a batch', { body: JSON.stringify({ handles: [HANDLE] }) }, 200, 0],
    [
      'POST',
      '/',
      'a native message',
      { body: nativeRequest(HANDLE), headers: { Accept: MESSAGE, 'Content-Type': MESSAGE } },
      200,
      0,
    ],
    ['OPTIONS', PATH, 'a preflight', {}, 200, 0],
    ['GET', '/api/nothing', 'an unknown path', {}, 404, 0],
    ['PATCH', '/api/site', 'an unknown method', {}, 501, 0],
    ['DELETE', '/api/site', 'an unsupported method', {}, 405, 0],
    ['PUT', PATH, 'a write', { body: '[]', headers: { Authorization: 'Basic eDp5' } }, 201, 1],
    ['GET', '/api/v2/handles/21.T11998/abc', 'ePIC v2', {}, 401, 1],
    ['GET', '/openapi.json', 'the API description', {}, 200, 1],
  ])('runs once for %s %s (%s)', async (method, target, _what, question, status, entered) => {
    const lookUps = vi.spyOn(RouteTable.prototype, 'at');
    const entries = vi.spyOn(express.application as unknown as { handle: () => void }, 'handle');
    const proxy = await startProxy({ REDIRECT_PREFIX_LOCATIONS: 'false', ...RULES });
    expect((await proxy.ask(target, { method, ...question })).status).toBe(status);
    expect([lookUps.mock.calls.length, entries.mock.calls.length]).toEqual([1, entered]);
  });
});
