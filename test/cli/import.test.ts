// Records exported from one proxy and imported into a different proxy.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ask } from '../support/ask.js';
import { cli, withoutProgress } from '../support/cli.js';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { fileOf, isoTime, recordLine } from '../support/record-files.js';
import { newFolder } from '../support/folder.js';
import { PATH, HANDLE, mockUpstream, notFound, recordOf } from '../support/upstream.js';

useNock();

const broken = { status: 502, body: '<html>' };

/** Returns the URL of the admin listener. */
async function adminOf({ app }: Proxy): Promise<string> {
  const server = createServer(app.admin).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('export and import', () => {
  test('copy the records of one prefix between proxies', async () => {
    const upstream = mockUpstream((target) => {
      const handle = decodeURIComponent(target.slice(13));
      return handle.endsWith('/gone') ? notFound(handle) : recordOf(undefined, handle);
    });
    const one = await startProxy();
    for (const handle of ['21.T1/a', '21.T1/%C3%A4', '21.T1/gone', '21.T1.2/b', '21.T10/c', '21.T10/gone'])
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
    expect(exported).toMatchObject({ code: 0, stderr: '2 records exported; skipped: 1 handle not found\n' });
    expect(readFileSync(file).readUInt16BE(0)).toBe(0x1f8b);

    upstream.answers(broken);
    const other = await startProxy();
    const admin = await adminOf(other);
    expect(await cli(['import', file, '--admin', admin])).toMatchObject({
      code: 0,
      stdout: '2 imported, 0 skipped\n',
    });
    for (const handle of ['21.T1/a', '21.T1/%C3%A4'])
      expect((await other.ask(`/api/handles/${handle}`)).headers['cache-status']).toContain('detail=error');
    expect((await other.ask('/api/handles/21.T1.2/b')).status).toBe(502);
    // A second import changes nothing, and --skip omits imported lines.
    const again = await cli(['import', file, '--skip', '1', '--admin', admin]);
    expect(again.stdout).toBe('0 imported, 1 skipped: 1 already in memory\n');
  });

  test('write records to standard output, one per line, when --output is absent', async () => {
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
    expect(withoutProgress(stderr)).toBe('1 record exported\n');
    expect(JSON.parse(stdout)).toMatchObject({
      handle: HANDLE.toUpperCase(),
      requestedAt: isoTime(0),
      staleAt: isoTime(3_600_000),
      values: [{ index: 1, type: 'URL' }, { index: 2 }, { index: 3 }],
    });
  });

  test('report the number of skipped records, and the reason', async () => {
    const proxy = await startProxy({ CACHE_FOUND_MAX_ENTRIES: '2', CACHE_STALE_IF_ERROR: '1h' });
    const admin = await adminOf(proxy);
    const old = recordLine('21.T1/old').replaceAll('2026-', '2025-');
    const lines = ['a', 'a', 'b', 'c'].map((suffix) => recordLine(`21.T1/${suffix}`));
    const given = fileOf([...lines, old, '{'].join('\n'));
    expect((await cli(['import', given, '--admin', admin])).stdout).toBe(
      '2 imported, 4 skipped: 1 already in memory, 1 too old, 1 left out (memory full), 1 invalid\n',
    );
  });

  test('reject a prefix with a slash, and count invalid lines', async () => {
    const proxy = await startProxy();
    const admin = await adminOf(proxy);
    expect((await cli(['export', '--prefix', '21.T1/', '--admin', admin])).code).toBe(2);
    expect((await ask(admin, '/export?prefix=21.T1%2F')).status).toBe(400);
    const given = fileOf(`${recordLine(HANDLE)}\n{"handle":""}\n{\n`);
    expect(await cli(['import', given, '--admin', admin])).toMatchObject({
      code: 1,
      stdout: '1 imported, 2 skipped: 2 invalid\n',
    });
  });

  test.each([
    ['is missing', () => join(newFolder(), 'nowhere'), 'ENOENT'],
    ['is a folder', newFolder, 'EISDIR'],
  ])('report an input file that %s in one sentence, with exit code 2', async (_what, path, reason) => {
    const file = path();
    const { code, stderr } = await cli(['import', file]);
    expect(code).toBe(2);
    expect(stderr).toMatch(new RegExp(`^cannot read ${file}: ${reason}.*\\n$`));
  });
});
