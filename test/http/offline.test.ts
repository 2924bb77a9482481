// Records of a file: exported, imported, read at the start, and served where there is no server at all.
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ask } from '../support/ask.js';
import { cli } from '../support/cli.js';
import { useNock } from '../support/nock.js';
import { type Proxy, STARTED_AT, startProxy } from '../support/proxy.js';
import { newFolder } from '../support/snapshot.js';
import { PATH, HANDLE, mockUpstream, recordOf, urlValue } from '../support/upstream.js';

useNock();

const broken = { status: 502, body: '<html>' };

/** The address of the admin listener. */
async function adminOf({ app }: Proxy): Promise<string> {
  const server = createServer(app.admin).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const isoTime = (ms: number): string => new Date(STARTED_AT + ms).toISOString();

const line = (handle: string, values: unknown[] = [urlValue('https://example.org/seed')]): string =>
  JSON.stringify({
    handle,
    requestedAt: isoTime(-60_000),
    staleAt: isoTime(0),
    deleteAt: isoTime(1000),
    values,
  });

function fileOf(text: string | Buffer): string {
  const file = join(newFolder(), 'records.ndjson.gz');
  writeFileSync(file, text);
  return file;
}

const whenRead = (proxy: Proxy) => expect.poll(() => proxy.app.control.inspect(HANDLE)).toHaveLength(1);

describe('without a server', () => {
  const OFFLINE = { UPSTREAM_URL: 'none' };

  test.each([
    ['plain', (text: string) => text],
    ['compressed', (text: string) => gzipSync(text)],
  ])('the records of a %s seed are served as fresh, without end', async (_, pack) => {
    const SEED_FILE = fileOf(pack(`${line(HANDLE)}\n`));
    const proxy = await startProxy({ ...OFFLINE, SEED_FILE });
    await whenRead(proxy);
    proxy.pass(10 * 365 * 86_400_000);
    const { status, text, headers } = await proxy.ask(PATH);
    expect([status, text]).toEqual([200, expect.stringContaining('https://example.org/seed')]);
    expect(headers['cache-status']).toMatch(/^handle-resolver-proxy; hit; ttl=\d+$/);
    expect((await proxy.ask(`/${HANDLE}`)).status).toBe(302);
  });

  test('another handle is refused as of a prefix that does not live here, and so is a write', async () => {
    const proxy = await startProxy({ ...OFFLINE, SEED_FILE: fileOf(`${line(HANDLE)}\n`) });
    await whenRead(proxy);
    const read = await proxy.ask('/api/handles/21.T11998/other');
    expect([read.status, JSON.parse(read.text)]).toMatchObject([400, { responseCode: 301 }]);
    const headers = { Authorization: 'Basic eDp5' };
    const write = await proxy.ask(PATH, { method: 'PUT', headers, body: '{"values":[]}' });
    expect([write.status, JSON.parse(write.text)]).toMatchObject([400, { responseCode: 301 }]);
  });

  test('values that are not public are not served, whoever made the file', async () => {
    const hidden = { ...(urlValue('https://example.org/secret') as object), index: 9, permissions: '1100' };
    const SEED_FILE = fileOf(`${line(HANDLE, [urlValue('https://example.org/open'), hidden])}\nnoise\n`);
    const proxy = await startProxy({ ...OFFLINE, SEED_FILE });
    await whenRead(proxy);
    const { text } = await proxy.ask(PATH);
    expect(text).toContain('/open');
    expect(text).not.toContain('secret');
  });
});

describe('with a server', () => {
  test('a record of the seed is loaded when it is used, and stands in while the server fails', async () => {
    const upstream = mockUpstream(broken);
    const proxy = await startProxy({ SEED_FILE: fileOf(`${line(HANDLE)}\n`), UPSTREAM_RETRY_AFTER: '0s' });
    await whenRead(proxy);
    const { text, headers } = await proxy.ask(PATH);
    expect(text).toContain('/seed');
    expect(headers['cache-status']).toContain('detail=error');
    expect(headers.age).toBe('60');
    upstream.answers(recordOf([urlValue('https://example.org/live')]));
    expect((await proxy.ask(PATH)).text).toContain('/live');
  });
});

describe('export and import', () => {
  test('carry the records of one prefix from proxy to proxy', async () => {
    const upstream = mockUpstream((target) => recordOf(undefined, decodeURIComponent(target.slice(13))));
    const one = await startProxy();
    for (const handle of ['21.T1/a', '21.T1/%C3%A4', '21.T1.2/b', '21.T10/c'])
      await one.ask(`/api/handles/${handle}`);
    const file = join(newFolder(), 'records.ndjson.gz');
    const exported = await cli([
      'export',
      '--prefix',
      '21.t1',
      '--output',
      file,
      '--admin',
      await adminOf(one),
    ]);
    expect(exported).toMatchObject({ code: 0, stderr: '2 records exported\n' });
    expect(readFileSync(file).readUInt16BE(0)).toBe(0x1f8b);

    upstream.answers(broken);
    const other = await startProxy();
    const admin = await adminOf(other);
    expect(await cli(['import', file, '--admin', admin])).toMatchObject({
      code: 0,
      stdout: '2 imported, 0 not needed, 0 refused\n',
    });
    for (const handle of ['21.T1/a', '21.T1/%C3%A4'])
      expect((await other.ask(`/api/handles/${handle}`)).headers['cache-status']).toContain('detail=error');
    expect((await other.ask('/api/handles/21.T1.2/b')).status).toBe(502);
    // Again changes nothing; what is done already can be left out.
    const again = await cli(['import', file, '--skip', '1', '--admin', admin]);
    expect(again.stdout).toBe('0 imported, 1 not needed, 0 refused\n');
  });

  test('without --output the records are on standard output, one a line', async () => {
    mockUpstream();
    const proxy = await startProxy();
    await proxy.ask(PATH);
    const { stdout, stderr } = await cli([
      'export',
      '--prefix',
      '21.T11998',
      '--admin',
      await adminOf(proxy),
    ]);
    expect(stderr).toBe('1 record exported\n');
    expect(JSON.parse(stdout)).toMatchObject({
      handle: HANDLE.toUpperCase(),
      requestedAt: isoTime(0),
      staleAt: isoTime(3_600_000),
      values: [{ index: 1, type: 'URL' }, { index: 2 }, { index: 3 }],
    });
  });

  test('a prefix with a slash is refused, and lines that are no records are counted', async () => {
    const proxy = await startProxy();
    const admin = await adminOf(proxy);
    expect((await cli(['export', '--prefix', '21.T1/', '--admin', admin])).code).toBe(2);
    expect((await ask(admin, '/export?prefix=21.T1%2F')).status).toBe(400);
    const given = fileOf(`${line(HANDLE)}\n{"handle":""}\n{\n`);
    expect(await cli(['import', given, '--admin', admin])).toMatchObject({
      code: 1,
      stdout: '1 imported, 0 not needed, 2 refused\n',
    });
  });
});
