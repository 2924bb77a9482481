// Each listener serves a valid and complete OpenAPI document, as JSON and as a page.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { logLevelBody, purgeBody } from '../../src/plugins/admin/admin.js';
import { allErrors } from '../../src/app/plugins.js';
import { CATALOGUE } from '../../src/errors.js';
import type { Route } from '../../src/http/route-table.js';
import { METHODS, type OpenApiDocument, documentPath } from '../../src/plugins/openapi/description.js';
import { batchBody } from '../../src/plugins/batch/batch.js';
import { bodyValue } from '../../src/v2/translation/data.js';
import { ask } from '../support/ask.js';
import { useNock } from '../support/nock.js';
import {
  ADMIN_DOCUMENT,
  ADMIN_FILE,
  ADMIN_ROUTES,
  DOCUMENT,
  PUBLIC_FILE,
  PUBLIC_ROUTES,
  publicDocument,
} from '../support/openapi.js';
import { startProxy } from '../support/proxy.js';

useNock();

const operationsOf = ({ paths }: OpenApiDocument) =>
  Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method];
      return operation === undefined ? [] : [{ path, method, operation }];
    }),
  );

const callsOf = (document: OpenApiDocument): string[] =>
  operationsOf(document).map(({ method, path }) => `${method.toUpperCase()} ${path}`);

/** Returns the call of each route with its operation id; a conditional route shares that of an unconditional one. */
function callsOfRoutes(routes: readonly Route[]): string[] {
  const calls = new Map<string, string>();
  for (const { method, path, id, when } of routes) {
    const call = `${method} ${documentPath(path)}`;
    if (when === undefined || !calls.has(call)) calls.set(call, id);
  }
  return [...calls].map(([call, id]) => `${call} ${id}`).sort();
}

describe.each([
  ['public', PUBLIC_FILE, PUBLIC_ROUTES],
  ['admin', ADMIN_FILE, ADMIN_ROUTES],
])('OpenAPI %s file', (_listener, document, routes) => {
  it('has an operation for each route, and a route for each operation', () => {
    const operations = operationsOf(document).map(
      ({ method, path, operation }) => `${method.toUpperCase()} ${path} ${operation.operationId}`,
    );
    expect(operations.sort()).toEqual(callsOfRoutes(routes));
  });

  it('describes each route of a shared call alone', () => {
    const calls = routes.map(({ method, path }) => `${method} ${documentPath(path)}`);
    const shared = routes.filter(
      (_route, at) => calls.indexOf(calls[at] ?? '') !== calls.lastIndexOf(calls[at] ?? ''),
    );
    // Lists have no switch, so a batch is never described without them.
    const ids = shared.map(({ id }) => id).filter((id) => id !== 'resolveHandlesByQuery');
    const alone = Object.entries(document['x-alone'] ?? {});
    expect(alone.map(([id]) => id).sort()).toEqual(ids.sort());
    for (const [id, { operationId }] of alone) expect(operationId).toBe(id);
  });

  it('lists every error code', () => {
    const { type, enum: codes } = document.components.schemas['ErrorCode'] as {
      type: string;
      enum: string[];
    };
    expect(type).toBe('string');
    expect([...codes].sort()).toEqual(
      allErrors()
        .map(({ code }) => code)
        .sort(),
    );
  });
});

const withoutDescriptions = (schema: unknown): unknown =>
  JSON.parse(
    JSON.stringify(schema, (key, value: unknown) =>
      key === 'description' || key === '$schema' ? undefined : value,
    ),
  );

describe('OpenAPI schema of a validated body', () => {
  it.each([
    ['V2BodyValue', bodyValue],
    ['BatchBody', batchBody],
    ['PurgeOrder', purgeBody],
    ['LogLevel', logLevelBody],
  ])('equals that of its validator: %s', (name, validator) => {
    const validated = z.toJSONSchema(validator, {
      io: 'input',
      unrepresentable: 'any',
      override({ jsonSchema }) {
        if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
        if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      },
    });
    const described = { ...PUBLIC_FILE.components.schemas, ...ADMIN_FILE.components.schemas }[name];
    expect(withoutDescriptions(described)).toEqual(withoutDescriptions(validated));
  });
});

describe.each([
  ['public', DOCUMENT],
  ['admin', ADMIN_DOCUMENT],
])('OpenAPI %s document', (_listener, document) => {
  it('passes the linter', async () => {
    const config = await createConfig({ extends: ['recommended'] });
    const problems = await lintFromString({ source: JSON.stringify(document), config });
    const complaints = problems.map(({ ruleId, message, location: [place] }) => [
      ruleId,
      message,
      place?.pointer,
    ]);
    expect(complaints).toEqual([]);
    expect(document.openapi).toBe('3.1.0');
  });

  it('has unique operation names and declares every path parameter', () => {
    const names = operationsOf(document).map(({ operation }) => operation.operationId);
    expect(new Set(names).size).toBe(names.length);
    for (const { path, operation } of operationsOf(document)) {
      const inPath = operation.parameters?.filter((parameter) => parameter.in === 'path') ?? [];
      expect(inPath.map(({ name }) => `{${name}}`)).toEqual(path.match(/\{\w+\}/g) ?? []);
    }
  });

  it('contains exactly the referenced schemas', () => {
    const names = [...JSON.stringify(document).matchAll(/#\/components\/schemas\/(\w+)/g)].map(
      ([, name]) => name,
    );
    expect(Object.keys(document.components.schemas).sort()).toEqual([...new Set(names)].sort());
  });

  it('describes HEAD for every GET', () => {
    for (const { get, head } of Object.values(document.paths))
      expect(head?.parameters).toEqual(get?.parameters);
  });
});

const NONE = { v2: false, redirect: false };

describe('OpenAPI admin document', () => {
  it.each(['/healthz', '/readyz'])('declares that no token is required: %s', (path) => {
    const { security, responses = {} } = ADMIN_DOCUMENT.paths[path]?.get ?? {};
    expect(security).toEqual([{}]);
    expect(Object.keys(responses)).toEqual(['200', '405', '503']);
  });

  it.each([
    ['/purge', 'post'],
    ['/traffic/blocked/{network}', 'delete'],
  ] as const)('documents the 503 for an unconfirmed invalidation: %s', (path, method) => {
    const { description } = ADMIN_DOCUMENT.paths[path]?.[method]?.responses[503] ?? {};
    expect(description?.toLowerCase()).toContain(CATALOGUE.INVALIDATION_UNCONFIRMED.title.toLowerCase());
  });
});

describe('OpenAPI public document', () => {
  it.each([
    ['/api/handles/{handle}', 'put'],
    ['/api/handles/{handle}', 'delete'],
    ['/api/v2/handles/{prefix}/{suffix}', 'put'],
    ['/api/v2/handles/{prefix}/{suffix}', 'delete'],
  ] as const)('documents each 503 from the lock and the invalidation for a write: %s %s', (path, method) => {
    const { description = '' } = DOCUMENT.paths[path]?.[method]?.responses[503] ?? {};
    for (const code of ['CONCURRENT_MODIFICATION', 'LOCK_UNAVAILABLE', 'INVALIDATION_UNCONFIRMED'] as const) {
      expect(description.toLowerCase()).toContain(CATALOGUE[code].title.toLowerCase());
    }
  });

  it.each(['get', 'put'] as const)('documents each Handle server failure in ePIC v2: %s', (method) => {
    const responses = DOCUMENT.paths['/api/v2/handles/{prefix}/{suffix}']?.[method]?.responses ?? {};
    for (const code of ['UPSTREAM_FAILED', 'UPSTREAM_BACKOFF', 'UPSTREAM_BUSY'] as const) {
      const { status, title } = CATALOGUE[code];
      expect(responses[status]?.description.toLowerCase()).toContain(title.toLowerCase());
    }
  });

  it('omits a disabled interface', () => {
    const { paths, tags } = publicDocument(NONE, []);
    expect(Object.keys(paths).filter((path) => /v2|hrls|resolve|^\/(\{handle\})?$/.test(path))).toEqual([]);
    expect(tags.map(({ name }) => name)).toEqual(['Record interface', 'Handle server', 'Description']);
  });

  it.each([
    [true, [], ['application/x-www-form-urlencoded']],
    [false, ['native'], ['application/x-hdl-message']],
    [true, ['native'], ['application/x-www-form-urlencoded', 'application/x-hdl-message']],
  ])('documents the POST bodies of the front page: redirect %s, plugins %j', (redirect, names, types) => {
    const { paths } = publicDocument({ ...NONE, redirect }, names);
    expect(Object.keys(paths['/']?.post?.requestBody?.content ?? {})).toEqual(types);
  });

  it('excludes the admin listener and its operations', () => {
    expect(JSON.stringify(DOCUMENT)).not.toMatch(/admin\.token|9090|\/purge|\/metrics/);
  });

  it('describes an ePIC v2 body as the code validates it', () => {
    expect(DOCUMENT.components.schemas['V2BodyValue']).toMatchObject({
      type: 'object',
      required: ['type'],
      properties: {
        idx: { type: 'integer', minimum: 1 },
        type: { type: 'string' },
        privs: expect.objectContaining({ anyOf: expect.anything() as unknown }) as unknown,
        timestamp: { description: expect.stringContaining('Ignored') as unknown },
        ttl: { description: expect.stringContaining('sign is ignored') as unknown },
        data: { description: expect.stringContaining('canonical base64') as unknown },
      },
    });
  });
});

describe('OpenAPI document at the admin listener', () => {
  async function startAdmin(): Promise<string> {
    const server = createServer((await startProxy()).app.admin).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  it('lists exactly the methods of the listener', async () => {
    const url = await startAdmin();
    for (const [path, item] of Object.entries(ADMIN_DOCUMENT.paths)) {
      const { status, headers } = await ask(url, path, { method: 'PATCH' });
      const described = METHODS.filter((method) => item[method]).map((method) => method.toUpperCase());
      expect([path, status, headers.allow]).toEqual([path, 405, [...described, 'OPTIONS'].join(', ')]);
    }
  });

  it('excludes public operations, which the listener does not serve', async () => {
    const url = await startAdmin();
    const served = JSON.parse((await ask(url, '/openapi.json')).text) as OpenApiDocument;
    expect(callsOf(served)).toEqual(callsOf(ADMIN_DOCUMENT));
    expect(callsOf(served).filter((call) => / \/api|\{handle\}/.test(call))).toEqual([]);
    expect((await ask(url, '/openapi')).text).toContain('POST /purge');
    expect((await ask(url, '/openapi?try=stats')).status).toBe(303);
  });
});

describe('OpenAPI document at the public listener', () => {
  it('is a page whose contents lead to each of its calls', async () => {
    const { text } = await (await startProxy()).ask('/openapi');
    const [, contents = ''] = /<nav [^>]*>([^]*?)<\/nav>/.exec(text) ?? [];
    const anchors = [...contents.matchAll(/href="#([^"]+)"/g)].map(([, anchor = '']) => anchor);
    const ids = [...text.matchAll(/<(?:section|h2) id="([^"]+)"/g)].map(([, id = '']) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(new Set(anchors)).toEqual(new Set(ids.filter((id) => id !== 'contents')));
    expect(anchors.length).toBeGreaterThan(20);
  });

  it('is served to scripts from any origin, and revalidated with 304', async () => {
    const proxy = await startProxy();
    const answer = await proxy.ask('/openapi.json', { headers: { Origin: 'https://a.example' } });
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({
      'content-type': 'application/json;charset=utf-8',
      'access-control-allow-origin': 'https://a.example',
    });
    expect(JSON.parse(answer.text)).toMatchObject({
      openapi: '3.1.0',
      paths: { '/{handle}': expect.anything() as unknown },
    });
    const again = await proxy.ask('/openapi.json', {
      headers: { 'If-None-Match': answer.headers.etag ?? '' },
    });
    expect(again.status).toBe(304);
  });

  it('is shown as a page that loads nothing from other hosts', async () => {
    const proxy = await startProxy({
      REVERSE_LOOKUP_URL: 'http://lookup.test',
      PREFIX_PAGES_PREFIXES: '21.T1',
    });
    const { status, headers, text } = await proxy.ask('/openapi');
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/html;charset=utf-8');
    expect(headers['content-security-policy']).toContain("default-src 'none'");
    const served = JSON.parse((await proxy.ask('/openapi.json')).text) as OpenApiDocument;
    for (const { operation, path, method } of operationsOf(served)) {
      if (method === 'head') continue;
      expect(text).toContain(`id="${operation.operationId}"`);
      expect(text).toContain(`${method.toUpperCase()} ${path}`);
    }
    expect(text).not.toMatch(/(?:src|action)="(?:https?:)?\/\//);
  });

  it('is served while redirects are disabled', async () => {
    const proxy = await startProxy({ REDIRECT_ENABLED: 'false', V2_ENABLED: 'false' });
    const { text } = await proxy.ask('/openapi');
    expect(text).not.toContain('ePIC v2');
    // There is no front page.
    expect(text).not.toContain('href="/"');
    expect((await proxy.ask('/openapi.json')).status).toBe(200);
  });

  it.each([
    [
      '?try=resolveHandle&path.handle=21.T1/a%20b%3Fc&query.index=1&query.type=&query.unknown=x',
      '/api/handles/21.T1%2Fa%20b%3Fc?index=1',
    ],
    ['?try=v2Read&path.prefix=21.T1&path.suffix=a/b', '/api/v2/handles/21.T1/a%2Fb'],
    ['?try=redirectHandle&path.handle=//evil.example/x', '/%2F%2Fevil.example%2Fx'],
    ['?try=redirectHandle&path.handle=https://evil.example', '/https%3A%2F%2Fevil.example'],
  ])('accepts the form %s and redirects to the operation', async (form, target) => {
    const { status, headers } = await (await startProxy()).ask(`/openapi${form}`);
    expect({ status, location: headers.location }).toEqual({ status: 303, location: target });
  });

  it.each(['?try=writeHandle', '?try=metrics', '?try=nothing', '?try='])(
    'is shown as a page for %s',
    async (form) => {
      expect((await (await startProxy()).ask(`/openapi${form}`)).status).toBe(200);
    },
  );
});
