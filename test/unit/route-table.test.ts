// The table compares methods and paths without decoding them.
import type { IncomingMessage } from 'node:http';
import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { PLUGINS } from '../../src/app/plugins.js';
import { publicRoutes } from '../../src/app/public-listener.js';
import { Router } from 'express';
import { type RoutedPath, pathsOf, routedMethod } from '../../src/http/route-table.js';
import { addRoutes } from '../../src/http/router.js';
import { readTarget } from '../../src/http/target.js';

const ADMIN_ROUTES = PLUGINS.flatMap(({ adminRoutes = [] }) => adminRoutes);

const ALL = { v2: true, redirect: true };
const NONE = { v2: false, redirect: false };
const ALL_ROUTES = publicRoutes(
  ALL,
  PLUGINS.flatMap(({ routes = [] }) => routes),
);
const ALL_PATHS = pathsOf(ALL_ROUTES);

function idOf(method: string, rawTarget: string, headers: Record<string, string> = {}, paths = ALL_PATHS) {
  const target = readTarget(rawTarget);
  const req = { method, headers } as unknown as IncomingMessage;
  const ofMethod = findPath(paths, target.path)?.routes.filter((route) => route.method === routedMethod(req));
  return ofMethod?.find(({ when }) => when?.(req, target) ?? true)?.id;
}

const findPath = (paths: readonly RoutedPath[], rawPath: string) =>
  paths.find(({ pattern }) => pattern.test(rawPath));

describe('route table', () => {
  describe('matching', () => {
    test.each([
      ['GET', '/api/handles/21.T1/a', 'resolveHandle'],
      ['HEAD', '/api/handles/21.T1%2Fa', 'resolveHandle'],
      ['GET', '/api/handles/..', 'resolveHandle'],
      ['DELETE', '/api/handles/?x', 'deleteWithoutHandle'],
      ['GET', '/api/handles?prefix=21.T1', 'listHandles'],
      ['GET', '/api/handles/?handle=21.T1/a', 'resolveHandlesByQuery'],
      ['GET', '/api/handles?handle=21.T1/a&prefix=21.T1', 'listHandles'],
      ['POST', '/api/sessions/node01', 'openSession'],
      ['GET', '/api/sessions/this', 'readSession'],
      ['POST', '/api/sessions/this/', 'openSession'],
      ['GET', '/api/verifications', 'verify'],
      ['GET', '/hrls/ping', 'pingLookup'],
      ['GET', '/hrls/handles/21.T1', 'lookUpHandlesOfPrefix'],
      ['GET', '/hrls', 'relayToLookup'],
      ['GET', '/api/v2/handles/', 'v2Prefixes'],
      ['GET', '/api/v2/handles/21.T1/', 'v2Search'],
      ['GET', '/api/v2/handles/21.T1//', 'v2Read'],
      ['GET', '/api/v2/handles/21.T1%2fa', 'v2Read'],
      ['GET', '/', 'lookUp'],
      ['GET', '/openapi.json', 'readDescription'],
      ['GET', '/openapi/', 'redirectHandle'],
      ['GET', '/apis', 'redirectHandle'],
      ['PUT', '/21.T1/a', undefined],
      ['GET', '/API/handles', 'listHandles'],
      ['GET', '/API/site', undefined],
      ['GET', '/HRLS/ping', undefined],
      ['GET', '/api', undefined],
      ['GET', '/api/sitex', undefined],
    ])('maps %s %s to %s', (method, target, id) => {
      expect(idOf(method, target)).toBe(id);
    });

    const message = { accept: 'application/x-hdl-message', 'content-type': 'application/x-hdl-message' };

    test.each([
      ['/', 'sendMessage'],
      ['/21.T1/a', 'sendMessageAnywhere'],
      ['/static/x', 'redirectHandleByPost'],
      ['/api/handles/21.T1/a', 'resolveHandleByPost'],
    ])('maps the POST of a native message to %s to the route %s', (path, id) => {
      expect(idOf('POST', path, message)).toBe(id);
    });

    test.each([
      ['/hrls/handles/21.T1', 'lookUpHandlesOfPrefix'],
      ['/hrls/x', 'relayToLookup'],
      ['/api/v2/handles/21.T1/a', 'v2Read'],
      ['/api/v2/handles/21.T1', 'v2Search'],
      ['/api/handles/21.T1/a', 'resolveHandle'],
      ['/21.T1/a', 'redirectHandle'],
    ])('maps %s to %s in any route order', (path, id) => {
      expect(idOf('GET', path, {}, pathsOf(ALL_ROUTES.toReversed()))).toBe(id);
    });

    it('rejects a path that ends before its parameter', () => {
      const admin = pathsOf(ADMIN_ROUTES);
      expect(findPath(admin, '/traffic/blocked/x')?.head).toBe('/traffic/blocked/');
      expect(findPath(admin, '/traffic/blocked/')).toBeUndefined();
    });

    it('excludes disabled interfaces', () => {
      const alone = pathsOf(publicRoutes(NONE, []));
      for (const path of ['/', '/21.T1/a', '/api/v2/handles', '/hrls/ping', '/api/resolve']) {
        expect(findPath(alone, path)).toBeUndefined();
      }
      expect(idOf('GET', '/api/handles?handle=21.T1/a', {}, alone)).toBe('listHandles');
    });
  });

  test('rejects a route without a handler', () => {
    expect(() => {
      addRoutes(Router(), ALL_ROUTES, {}, () => () => undefined);
    }).toThrow(/no handler \w+ for /);
  });

  test.each([
    ['the public listener', ALL_ROUTES],
    ['the admin listener', ADMIN_ROUTES],
  ])('has a unique operationId for each route of %s', (_listener, routes) => {
    const ids = routes.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  // Their handlers share one mapping: those of the core would silently answer the routes of the plugin.
  test.each([
    ['the public listener', [publicRoutes(ALL, []), ...PLUGINS.map(({ routes = [] }) => routes)]],
    ['the admin listener', PLUGINS.map(({ adminRoutes = [] }) => adminRoutes)],
  ])('has no handler name of two plugins, or of a plugin and the core, for %s', (_listener, owners) => {
    const names = owners.flatMap((routes) => [...new Set(routes.map(({ handler }) => handler))]);
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  });

  /** `target.ts` finds the interface of a path; `request-log.ts` also hides session ids in unrouted paths. */
  const MAY_COMPARE = ['http/target.ts', 'http/request-steps.ts'];

  /** Matches an interface path in a regular expression or string comparison. */
  const PATH_PATTERN =
    /\\\/\W{0,4}(?:api|hrls|openapi)\b|(?:===|startsWith\(|includes\() *['"`]\/(?:api|hrls|openapi)/;

  test('is the only place that compares paths, except target.ts and request-steps.ts', () => {
    const root = new URL('../../src/', import.meta.url);
    // The dev-server module has a separate router.
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && !file.startsWith('dev-server/'),
    );
    const comparing = files.filter((file) => PATH_PATTERN.test(readFileSync(new URL(file, root), 'utf8')));
    expect(comparing.sort()).toEqual([...MAY_COMPARE].sort());
  });
});
