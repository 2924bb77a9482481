// An integrator's program uses the types that openapi-typescript generates from /openapi.json, without casts.
import createClient from 'openapi-fetch';
import type { components, paths } from './api.js';

type Value = components['schemas']['Value'];

/** Returns the text values only; `format` determines the type of `value`. */
const textsOf = (values: Value[] = []): string[] =>
  values.flatMap(({ data }) => (data.format === 'string' ? [data.value] : []));

export async function run(baseUrl: string, authorization: string) {
  // The client accepts JSON and problem JSON, but neither JSONP nor pages.
  const client = createClient<paths, `application/${string}json`>({ baseUrl });
  const login = { headers: { Authorization: authorization } };
  const page = { path: { handle: '21.T11998/page' } };
  const created = { path: { handle: '21.T11998/of a client' } };
  const v2 = { path: { prefix: '21.T11998', suffix: 'page' } };

  const read = await client.GET('/api/handles/{handle}', { params: { ...page, query: { type: ['URL'] } } });
  const missing = await client.GET('/api/handles/{handle}', {
    params: { path: { handle: '21.T11998/none' } },
  });
  const wrong = await client.DELETE('/api/handles/{handle}', { params: page, ...login });
  const written = await client.PUT('/api/handles/{handle}', {
    params: { ...created, query: { overwrite: 'true' } },
    body: [{ index: 1, type: 'URL', data: 'https://example.org/client' }],
    ...login,
  });
  const many = await client.POST('/api/resolve', {
    body: { handles: ['21.T11998/page', '21.T11998/none'], type: ['URL'] },
  });
  const head = await client.HEAD('/api/handles/{handle}', { params: page });
  const session = await client.POST('/api/sessions', login);
  const site = await client.GET('/api/site');
  const values = await client.GET('/api/v2/handles/{prefix}/{suffix}', { params: { ...v2 }, ...login });
  const refused = await client.DELETE('/api/v2/handles/{prefix}/{suffix}', { params: { ...v2 }, ...login });
  return {
    urls: textsOf(read.data?.values),
    missing: missing.error?.responseCode,
    deletion: wrong.error?.code === 'NO_DELETE' ? wrong.error.message : undefined,
    written: written.data?.handle,
    many: many.data?.map(({ handle, status, body }) => [handle, status, body.responseCode]),
    etag: head.response.headers.get('etag'),
    user: session.data?.id,
    site: site.data?.responseCode,
    types: values.data?.map(({ type }) => type),
    refused: refused.error?.code,
  };
}
