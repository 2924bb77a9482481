// Repository lists are loaded in single flight, within the size limit of their server.
import nock from 'nock';
import { describe, expect, it } from 'vitest';
import { DSPACE } from '../../src/plugins/repositories/repositories.js';
import { ConcurrencyLimiter } from '../../src/upstream/concurrency-limiter.js';
import { useNock } from '../support/nock.js';
import { createNodeHttpDispatcher } from '../support/node-http-dispatcher.js';
import { SETTINGS, createSlicer } from './ask.js';

useNock();

const SITE = 'http://repository.test';

function createList({ maxBodyBytes = 100_000 } = {}) {
  const settings = { ...SETTINGS, url: `${SITE}/server`, maxBodyBytes };
  return DSPACE.createList(settings, {
    pseudonym: 'test',
    limiter: new ConcurrencyLimiter(settings),
    dispatcher: createNodeHttpDispatcher({ connections: 10 }),
    slicer: createSlicer(),
  });
}

describe('repository list', () => {
  it('is read once for concurrent callers, and again for later callers', async () => {
    const handles = ['123456/1', '123456/2', '123456/3'];
    const scope = nock(SITE).get('/server/listhandles/123456/').twice().reply(200, handles);
    const list = createList();
    const pages = await Promise.all([0, 1, 2].map((page) => list('123456', { page, pageSize: 1 })));
    expect(pages.map((page) => page.handles)).toEqual(handles.map((handle) => [handle]));
    expect(scope.isDone()).toBe(false);
    await list('123456', {});
    expect(scope.isDone()).toBe(true);
  });

  it('is parsed once while it does not change', async () => {
    const handles = ['123456/1', '123456/2', '1234567/1'];
    const changed = [...handles, '123456/3'];
    const scope = nock(SITE).get('/server/listhandles/123456/').twice().reply(200, handles);
    const list = createList();
    const first = await list('123456', {});
    expect((await list('123456', {})).handles).toBe(first.handles);
    expect(scope.isDone()).toBe(true);
    nock(SITE).get('/server/listhandles/123456/').reply(200, changed);
    expect((await list('123456', {})).handles).toEqual(['123456/1', '123456/2', '123456/3']);
  });

  it('fails if the server fails with the body of the last list', async () => {
    const handles = ['123456/1'];
    nock(SITE).get('/server/listhandles/123456/').reply(200, handles);
    const list = createList();
    await list('123456', {});
    nock(SITE).get('/server/listhandles/123456/').reply(500, handles);
    await expect(list('123456', {})).rejects.toMatchObject({ code: 'UPSTREAM_INVALID_RESPONSE' });
  });

  it('fails for each caller if it exceeds upstream.maxBodySize', async () => {
    nock(SITE).get('/server/listhandles/123456/').reply(200, ['123456/1']);
    const list = createList({ maxBodyBytes: 5 });
    const failed = await Promise.allSettled([list('123456', {}), list('123456', {})]);
    expect(failed).toMatchObject(Array(2).fill({ reason: { code: 'UPSTREAM_INVALID_RESPONSE' } }));
  });

  it('is requested with dot segments escaped', async () => {
    nock(SITE).get('/server/listhandles/..%2F').reply(404);
    expect(await createList()('..', {})).toMatchObject({ status: 501, responseCode: 5 });
  });
});
