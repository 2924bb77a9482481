// The OpenAPI document is valid, complete, and served for programs and for people.
import { readFileSync } from 'node:fs';
import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, it } from 'vitest';
import { openApiDocument } from '../../src/openapi/document.js';
import { useNock } from '../support/nock.js';
import { DOCUMENT } from '../support/openapi.js';
import { startProxy } from '../support/proxy.js';

useNock();

const METHODS = ['get', 'put', 'post', 'delete'] as const;
const operations = Object.entries(DOCUMENT.paths).flatMap(([path, item]) =>
  METHODS.flatMap((method) => {
    const operation = item[method];
    return operation === undefined ? [] : [{ path, method, operation }];
  }),
);

describe('the document', () => {
  it('is valid OpenAPI 3.1', async () => {
    const read = JSON.parse(JSON.stringify(DOCUMENT)) as Record<string, unknown>;
    const { valid, errors } = await new Validator().validate(read);
    expect({ valid, errors }).toEqual({ valid: true, errors: undefined });
    expect(DOCUMENT.openapi).toBe('3.1.0');
  });

  it('names each call once, and each part of its path', () => {
    const names = operations.map(({ operation }) => operation.operationId);
    expect(new Set(names).size).toBe(names.length);
    for (const { path, operation } of operations) {
      const inPath = operation.parameters?.filter((parameter) => parameter.in === 'path') ?? [];
      expect(inPath.map(({ name }) => `{${name}}`)).toEqual(path.match(/\{\w+\}/g) ?? []);
    }
  });

  it('refers to nothing that is not there', () => {
    const names = [...JSON.stringify(DOCUMENT).matchAll(/#\/components\/schemas\/(\w+)/g)].map(
      ([, name]) => name,
    );
    expect(Object.keys(DOCUMENT.components.schemas).sort()).toEqual([...new Set(names)].sort());
  });

  it('leaves out an interface that is turned off', () => {
    const { paths, tags } = openApiDocument({
      version: '1.0.0',
      title: 'x',
      has: { batch: false, v2: false, redirect: false },
      admin: { host: '::1', port: 9090 },
    });
    expect(Object.keys(paths).filter((path) => path.includes('v2') || path === '/{handle}')).toEqual([]);
    expect(tags.map(({ name }) => name)).toEqual(['Record interface', 'Admin']);
    expect(paths['/healthz']?.servers?.[0]?.url).toBe('http://[::1]:9090');
  });

  it('describes a v2 body as the code checks it', () => {
    expect(DOCUMENT.components.schemas['V2BodyValue']).toMatchObject({
      type: 'object',
      required: ['type'],
      properties: {
        idx: { type: 'integer', minimum: 1 },
        type: { type: 'string' },
        privs: expect.objectContaining({ anyOf: expect.anything() as unknown }) as unknown,
        timestamp: { description: expect.stringContaining('ignored') as unknown },
        ttl: { description: expect.stringContaining('amount') as unknown },
        data: { description: expect.stringContaining('canonical base64') as unknown },
      },
      anyOf: [{ required: ['parsed_data'] }, { required: ['data'] }],
    });
  });
});

describe('the calls of the operator', () => {
  it('are all answered by the admin listener', () => {
    const told = operations
      .filter(({ operation }) => operation.tags.includes('Admin'))
      .map(({ path, method }) => `${method} ${path}`);
    const code = ['app', 'api']
      .map((name) => readFileSync(new URL(`../../src/admin/${name}.ts`, import.meta.url), 'utf8'))
      .join('');
    const routes = [...code.matchAll(/\b(?:app|api)\.(get|put|post|delete)\('([^']+)'/g)];
    expect(routes.map(([, method, path]) => `${method} ${path}`)).toEqual(expect.arrayContaining(told));
  });
});

describe('the public listener', () => {
  it('serves it to programs, of any origin, once', async () => {
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

  it('serves it to people, as a page that runs and loads nothing from elsewhere', async () => {
    const proxy = await startProxy();
    const { status, headers, text } = await proxy.ask('/openapi');
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/html;charset=utf-8');
    expect(headers['content-security-policy']).toContain("default-src 'none'");
    for (const { operation, path, method } of operations) {
      expect(text).toContain(`id="${operation.operationId}"`);
      expect(text).toContain(`${method.toUpperCase()} ${path}`);
    }
    expect(text).not.toMatch(/(?:src|action)="(?:https?:)?\/\//);
  });

  it('serves both where redirects are turned off', async () => {
    const proxy = await startProxy({ REDIRECT_ENABLED: 'false', V2_ENABLED: 'false' });
    expect((await proxy.ask('/openapi')).text).not.toContain('ePIC v2');
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
  ])('maps the form %s to the call', async (form, target) => {
    const { status, headers } = await (await startProxy()).ask(`/openapi${form}`);
    expect({ status, location: headers.location }).toEqual({ status: 303, location: target });
  });

  it.each(['?try=writeHandle', '?try=metrics', '?try=nothing', '?try='])(
    'shows the page for %s',
    async (form) => {
      expect((await (await startProxy()).ask(`/openapi${form}`)).status).toBe(200);
    },
  );
});
