// A disk that does not keep what a command has written, as a thin volume or a quota whose limit shows only at a sync.
import { execFileSync } from 'node:child_process';
import fs, {
  existsSync,
  lstatSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, onTestFinished, test, vi } from 'vitest';
import { cli } from '../support/cli.js';
import { newFolder } from '../support/folder.js';
import { fileOf, recordLine } from '../support/record-files.js';
import { urlValue } from '../support/upstream.js';

const ownFile = await open(import.meta.filename);
/** What all open files of `node:fs/promises` have in common. */
const openFiles = Object.getPrototypeOf(ownFile) as FileHandle;
await ownFile.close();

/** Lets every sync fail after the first `kept`. */
function failSyncs(kept = 0): void {
  let left = kept;
  const sync = (): void => {
    if (left-- <= 0) throw new Error('ENOSPC: no space left on device, fsync');
  };
  const sliced = vi.spyOn(fs, 'fsync').mockImplementation((_file, done) => {
    try {
      sync();
      done(null);
    } catch (error) {
      done(error as Error);
    }
  });
  const blocking = vi.spyOn(fs, 'fsyncSync').mockImplementation(sync);
  const promised = vi.spyOn(openFiles, 'sync').mockImplementation(() => Promise.resolve().then(sync));
  onTestFinished(() => {
    for (const spy of [sliced, blocking, promised]) spy.mockRestore();
  });
}

const record = (handle: string): string => recordLine(handle, [urlValue('https://example.org/')]);

async function startAdmin(): Promise<string> {
  const headers = { 'Content-Type': 'application/x-ndjson' };
  const body = `${record('21.T1/NEW')}\n`;
  const server = createServer((_req, res) => res.writeHead(200, headers).end(body)).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.close();
  });
  await new Promise((resolve) => server.once('listening', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test.each(['records', 'records.gz'])(
  'an export to it fails, and keeps what earlier runs have (%s)',
  async (name) => {
    const folder = newFolder();
    const output = join(folder, name);
    writeFileSync(`${output}.21.T1.1.partial`, `${record('21.T1/OLD')}\n`);
    const args = ['export', '--prefix', '21.T1', '--output', output, '--admin', await startAdmin()];
    failSyncs();
    const { code, stderr } = await cli(args);
    expect([code, stderr]).toEqual([1, expect.stringContaining('no space left on device') as string]);
    expect(readdirSync(folder)).toEqual([`${name}.21.T1.1.partial`, `${name}.21.T1.2.partial`]);
  },
);

/** Creates a named pipe, which a rename would replace like the device /dev/null. */
function newPipe(): string {
  const path = join(newFolder(), 'pipe');
  execFileSync('mkfifo', [path]);
  return path;
}

test.each([
  ['export', (pipe: string) => ['export', '--prefix', '21.T1', '--output', pipe]],
  ['import', (pipe: string) => ['import', fileOf(record('21.T1/A')), '--output', pipe]],
  ['check-links', (pipe: string) => ['check-links', fileOf(record('21.T1/A')), '--state', pipe]],
])('%s replaces no device or named pipe, and needs the folder of the file', async (command, argsOf) => {
  const [pipe, missing] = [newPipe(), join(newFolder(), 'missing')];
  const admin = command === 'export' ? ['--admin', await startAdmin()] : [];
  const { code, stderr } = await cli([...argsOf(pipe), ...admin]);
  expect([code, stderr]).toEqual([2, `${pipe} is not a regular file\n`]);
  expect(statSync(pipe).isFIFO()).toBe(true);
  const lost = await cli([...argsOf(join(missing, 'file')), ...admin]);
  expect([lost.code, lost.stderr]).toEqual([2, `create ${missing} first: it does not exist\n`]);
});

test('import writes to the file of a link, as /dev/stdout is one, and keeps the link', async () => {
  const [folder, kept] = [newFolder(), newFolder()];
  const [link, target] = [join(folder, 'link'), join(kept, 'seed')];
  writeFileSync(target, 'older');
  symlinkSync(target, link);
  const { code } = await cli(['import', fileOf(record('21.T1/A')), '--output', link]);
  expect([code, lstatSync(link).isSymbolicLink(), readdirSync(kept)]).toEqual([0, true, ['seed']]);
  expect(readFileSync(target, 'utf8')).toContain('21.T1/A');
});

test.each([
  [
    'export',
    async (link: string) => ['export', '--prefix', '21.T1', '--output', link, '--admin', await startAdmin()],
  ],
  ['import', (link: string) => ['import', fileOf(record('21.T1/A')), '--output', link]],
])('%s to a link compresses by the name of the link', async (_command, argsOf) => {
  const [folder, kept] = [newFolder(), newFolder()];
  const target = join(kept, 'seed');
  const link = join(folder, 'seed.gz');
  writeFileSync(target, 'older');
  symlinkSync(target, link);
  expect((await cli(await argsOf(link))).code).toBe(0);
  expect(gunzipSync(readFileSync(target)).toString()).toContain('21.T1/');
});

test('check-links rejects a wrong state file before it exports a prefix', async () => {
  const pipe = newPipe();
  const { code, stderr } = await cli([
    'check-links',
    '--prefix',
    '21.T1',
    '--state',
    pipe,
    '--admin',
    'http://127.0.0.1:9',
  ]);
  expect([code, stderr]).toEqual([2, `${pipe} is not a regular file\n`]);
});

test.each(['seed', 'seed.gz'])('an import to a file on it fails, and leaves no file (%s)', async (name) => {
  const folder = newFolder();
  const file = fileOf(record('21.T1/A'));
  failSyncs();
  const { code, stderr } = await cli(['import', file, '--output', join(folder, name)]);
  expect([code, stderr]).toEqual([1, expect.stringContaining('no space left on device') as string]);
  expect(readdirSync(folder)).toEqual([]);
});

test('a check of links on it fails, and keeps the last results', async () => {
  const state = join(newFolder(), 'links.ndjson');
  const line = `${JSON.stringify({ url: 'https://example.org/', result: '200', checkedAt: new Date().toISOString() })}\n`;
  writeFileSync(state, line);
  failSyncs();
  const { code } = await cli(['check-links', fileOf(record('21.T1/A')), '--state', state]);
  expect([code, readFileSync(state, 'utf8')]).toEqual([2, line]);
});

test('a warm-up on it fails, and keeps the handles that are done', async () => {
  const state = join(newFolder(), 'state');
  // Superseded lines are dropped at the start.
  const lines = '21.T1/A\t2026-11-01T00:00:00.000Z\n'.repeat(3);
  writeFileSync(state, lines);
  failSyncs();
  const { code } = await cli(['warm', fileOf('21.T1/A\n'), '--state', state]);
  expect([code, readFileSync(state, 'utf8')]).toEqual([2, lines]);
});

test('a registration on it leaves none of its files, so that the same command can be repeated', async () => {
  const output = join(newFolder(), 'service');
  const answers = ['--address', '203.0.113.10', '--organization', 'Library', '--email', 'pid@example.org'];
  failSyncs(1);
  const { code, stderr } = await cli(['register', '--output', output, ...answers]);
  expect([code, stderr]).toEqual([1, expect.stringContaining('no space left on device') as string]);
  expect(existsSync(output) ? readdirSync(output) : []).toEqual([]);
});
