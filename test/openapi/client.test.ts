// The generated client compiles without casts and works.
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';
import { describe, expect, onTestFinished, test } from 'vitest';
import '../support/real-sockets.js';
import { startDemoServer } from '../support/demo.js';
import { startProxy } from '../support/proxy.js';
import { USER01 } from '../support/v2.js';

const folder = new URL('client/', import.meta.url);

interface Client {
  run: (baseUrl: string, authorization: string) => Promise<object>;
}

async function compile(document: string): Promise<Client> {
  const types = new URL('api.d.ts', folder);
  onTestFinished(() => {
    rmSync(types);
  });
  writeFileSync(types, astToString(await openapiTS(document)));
  const tsc = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url));
  execFileSync(process.execPath, [tsc, '--project', fileURLToPath(folder)], { encoding: 'utf8' });
  return (await import(new URL('client.ts', folder).href)) as Client;
}

describe('client generated from the OpenAPI document', () => {
  test('reads and writes records and receives errors, all with the documented types', async () => {
    const demo = await startDemoServer();
    const { url, ask } = await startProxy({ UPSTREAM_URL: demo.url });
    const client = await compile((await ask('/openapi.json')).text);
    expect(await client.run(url, USER01)).toEqual({
      urls: ['https://example.org/page'],
      missing: 100,
      deletion: 'Deletion of handles is deactivated on this proxy (nodelete)',
      written: '21.T11998/of a client',
      many: [
        ['21.T11998/page', 200, 1],
        ['21.T11998/none', 404, 100],
      ],
      etag: expect.stringMatching(/^"/) as string,
      user: '300:21.T11998/USER01',
      site: 1,
      types: expect.arrayContaining(['URL']) as string[],
      refused: 'V2_NO_DELETE',
    });
  });
});
