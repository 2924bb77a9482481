import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { BLOCK_HEAD_BYTES, MAGIC_BYTES, decodeBlockHead } from '../../src/plugins/snapshot/format.js';
import { fixed } from '../support/fixed.js';
import { useNock } from '../support/nock.js';
import { importLines } from '../support/record-files.js';
import { newFolder } from '../support/folder.js';
import { snapshotOf, startLogged } from '../support/snapshot.js';
import { HANDLE, PATH, mockUpstream, recordOf, urlValue } from '../support/upstream.js';

useNock();

const broken = { status: 502, body: '<html>' };

/** Returns the offset after the first block, which identifies the upstream. */
function firstEntriesAt(bytes: Buffer): number {
  const head = decodeBlockHead(bytes.subarray(MAGIC_BYTES, MAGIC_BYTES + BLOCK_HEAD_BYTES));
  return MAGIC_BYTES + BLOCK_HEAD_BYTES + (head?.payloadBytes ?? 0);
}

/** Returns the decompressed content of all blocks after the first block. */
function contentOf(file: string): string {
  const bytes = readFileSync(file);
  let at = firstEntriesAt(bytes);
  let text = '';
  for (;;) {
    const head = decodeBlockHead(bytes.subarray(at, at + BLOCK_HEAD_BYTES));
    if (!head?.payloadBytes) return text;
    at += BLOCK_HEAD_BYTES;
    text += inflateRawSync(bytes.subarray(at, at + head.payloadBytes)).toString();
    at += head.payloadBytes;
  }
}

describe('snapshot file', () => {
  test('is written through a link, which stays one', async () => {
    const [folder, disk] = [newFolder(), newFolder()];
    const [link, target] = [join(folder, 'snapshot'), join(disk, 'kept')];
    writeFileSync(target, 'older');
    symlinkSync(target, link);
    const proxy = await startLogged(link);
    await proxy.line('snapshot rejected');
    await proxy.close();
    expect([readdirSync(folder), readdirSync(disk)]).toEqual([['snapshot'], ['kept']]);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(readFileSync(target, 'latin1')).not.toBe('older');
  });

  test('is created behind a link to a file that does not exist yet', async () => {
    const [folder, disk] = [newFolder(), newFolder()];
    const [link, next] = [join(folder, 'snapshot'), join(folder, 'next')];
    symlinkSync('next', link);
    symlinkSync(join(disk, 'kept'), next);
    const proxy = await startLogged(link);
    await proxy.close();
    expect([readdirSync(folder), readdirSync(disk)]).toEqual([['next', 'snapshot'], ['kept']]);
    expect([link, next].map((path) => lstatSync(path).isSymbolicLink())).toEqual([true, true]);
  });

  test('is rejected behind a link that leads to itself', async () => {
    const link = join(newFolder(), 'snapshot');
    symlinkSync('snapshot', link);
    const proxy = await startLogged(link);
    expect((await proxy.line('snapshot rejected'))['reason']).toContain('ELOOP');
    await proxy.close();
  });

  test('is readable only by its owner, and is the only file left after shutdown', async () => {
    const folder = newFolder();
    const file = join(folder, 'snapshot');
    // A killed process has left it.
    writeFileSync(`${file}.tmp`, 'begun', { mode: 0o644 });
    const upstream = mockUpstream();
    const proxy = await startLogged(file);
    await proxy.ask(PATH);
    await proxy.app.operations.purge({ handles: ['21.T11998/other'], isSoft: false });
    await proxy.close();
    expect(proxy.lines('snapshot written')).toMatchObject([{ records: 1 }]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(['snapshot']);
    expect(upstream.asked).toBe(1);
  });

  test('is written at each interval', async () => {
    mockUpstream();
    const file = join(newFolder(), 'snapshot');
    const proxy = await startLogged(file, fixed({ cache: { snapshot: { everyMs: 1000 } } }));
    await proxy.ask(PATH);
    await expect.poll(() => proxy.lines('snapshot written').at(-1)).toMatchObject({ records: 1 });
  });

  test('is complete, and leaves no temporary file, when the proxy stops while writing it', async () => {
    mockUpstream();
    const folder = newFolder();
    const proxy = await startLogged(
      join(folder, 'snapshot'),
      fixed({ cache: { snapshot: { everyMs: 1000 } } }),
    );
    const times = { requestedAt: '2026-11-21', staleAt: '2026-11-22', deleteAt: '2126-11-22' };
    const lines = Array.from({ length: 20_000 }, (_, at) =>
      JSON.stringify({ handle: `21.T11998/${at}`, ...times, values: [urlValue('https://example.org/')] }),
    );
    await importLines(proxy, lines);
    await expect.poll(() => readdirSync(folder), { interval: 2 }).toContain('snapshot.tmp');
    await proxy.close();
    expect(readdirSync(folder)).toEqual(['snapshot']);
    expect(proxy.lines('snapshot written').at(-1)).toMatchObject({ records: 20_000 });
  });

  test('affects no request, and is reported once, when it cannot be written', async () => {
    mockUpstream();
    // Even root cannot create a file in /sys.
    const proxy = await startLogged('/sys/snapshot', fixed({ cache: { snapshot: { everyMs: 1000 } } }));
    await expect
      .poll(() => proxy.lines('snapshot not written'))
      .toEqual([
        expect.objectContaining({
          remedy: expect.stringContaining('folder of cache.snapshot.file') as string,
        }),
      ]);
    await proxy.app.operations.purge({ handles: [HANDLE], isSoft: false });
    expect((await proxy.ask(PATH)).status).toBe(200);
    expect(await proxy.app.context.metrics.exposition()).toContain('\nhandle_proxy_snapshot_failing 1\n');
    await proxy.close();
    expect(proxy.lines('snapshot not written')).toHaveLength(1);
  });

  test('contains no record that was read with credentials', async () => {
    const file = join(newFolder(), 'snapshot');
    const upstream = mockUpstream(recordOf([urlValue('https://example.org/secret')]));
    const proxy = await startLogged(file);
    await proxy.ask('/api/handles/21.T11998/private', {
      headers: { Authorization: 'Basic c2VjcmV0OmtleQ==' },
    });
    await proxy.ask('/api/handles/21.T11998/private?publicOnly=false');
    upstream.answers(recordOf());
    await proxy.ask(PATH);
    await proxy.close();
    expect(contentOf(file)).toContain('https://example.org/1');
    expect(contentOf(file)).not.toContain('secret');
  });

  test.each([
    ['from a different upstream', 'foreign', { UPSTREAM_CASE_SENSITIVE: 'true' }, () => undefined],
    [
      'from a later version',
      'unknown',
      {},
      (file: string) => {
        writeFileSync(file, 'HRPSNAP9', { flag: 'r+' });
      },
    ],
    [
      'empty',
      'unknown',
      {},
      (file: string) => {
        truncateSync(file, 0);
      },
    ],
    [
      'truncated',
      'incomplete',
      {},
      (file: string) => {
        truncateSync(file, statSync(file).size - 30);
      },
    ],
  ])(
    'is rejected with one log line, and affects no request, when it is %s',
    async (_, reason, env, damage) => {
      const file = join(newFolder(), 'snapshot');
      const upstream = await snapshotOf(file);
      const askedBefore = upstream.asked;
      damage(file);
      const proxy = await startLogged(file, env);
      expect(await proxy.line('snapshot rejected')).toMatchObject({ level: 'warn', file, reason });
      expect((await proxy.ask(PATH)).status).toBe(200);
      expect(upstream.asked).toBe(askedBefore + 1);
      expect(proxy.lines('snapshot loaded')).toEqual([]);
    },
  );

  test('is restored except for its damaged blocks', async () => {
    const file = join(newFolder(), 'snapshot');
    const long = recordOf([urlValue(`https://example.org/${'x'.repeat(140_000)}`)]);
    const upstream = mockUpstream((target) => ({
      ...long,
      body: { ...(long.body as object), handle: target.slice(13) },
    }));
    const first = await startLogged(file);
    const paths = [1, 2, 3, 4].map((number) => `/api/handles/21.T11998/${number}`);
    for (const path of paths) await first.ask(path);
    await first.close();
    const bytes = readFileSync(file);
    const at = firstEntriesAt(bytes) + BLOCK_HEAD_BYTES + 5;
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
    writeFileSync(file, bytes);
    upstream.answers(broken);
    const proxy = await startLogged(file);
    expect(await proxy.line('snapshot rejected')).toMatchObject({ blocks: 1, reason: 'damaged' });
    expect(await proxy.line('snapshot loaded')).toMatchObject({ restored: 2 });
    const statuses = await Promise.all(paths.map(async (path) => (await proxy.ask(path)).status));
    expect(statuses).toEqual([502, 502, 200, 200]);
  });

  test.each([
    [
      'is in a missing folder',
      (file: string) => {
        rmSync(join(file, '..'), { recursive: true });
      },
    ],
    [
      'is a folder',
      (file: string) => {
        rmSync(file);
        mkdirSync(file);
      },
    ],
    [
      'is a named pipe',
      (file: string) => {
        rmSync(file);
        execFileSync('mkfifo', [file]);
      },
    ],
    [
      'has a named pipe as its log of deletions',
      (file: string) => {
        execFileSync('mkfifo', [`${file}.deleted`]);
      },
    ],
    [
      'is in an unwritable folder',
      (file: string) => {
        chmodSync(join(file, '..'), 0o500);
      },
    ],
  ])('affects no request, and is reported at most once, when it %s', async (_, spoil) => {
    const folder = join(newFolder(), 'within');
    mkdirSync(folder);
    const file = join(folder, 'snapshot');
    await snapshotOf(file);
    spoil(file);
    const proxy = await startLogged(file, fixed({ cache: { snapshot: { everyMs: 1000 } } }));
    const purge = () => proxy.app.operations.purge({ handles: [HANDLE], isSoft: false });
    await purge();
    await purge();
    expect((await proxy.ask(PATH)).status).toBe(200);
    await proxy.close();
    expect(proxy.lines('snapshot not written').length).toBeLessThanOrEqual(1);
  });

  test('blocks no write when its log of deletions becomes a named pipe', async () => {
    const folder = newFolder();
    const file = join(folder, 'snapshot');
    await snapshotOf(file);
    const proxy = await startLogged(file);
    await proxy.line('snapshot loaded');
    execFileSync('mkfifo', [`${file}.deleted`]);
    await proxy.app.operations.purge({ handles: [HANDLE], isSoft: false });
    expect(readdirSync(folder)).toEqual(['snapshot.deleted']);
    await proxy.close();
    expect(proxy.lines('snapshot not written')).toHaveLength(1);
  });
});
