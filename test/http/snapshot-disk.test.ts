// A disk of the snapshot that does not respond, as a network drive or a volume whose storage is away.
import { readFileSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { DeletionLog } from '../../src/plugins/snapshot/deletion-log.js';
import { gate } from '../support/gate.js';
import { isSettled } from '../support/manual-clock.js';
import { useNock } from '../support/nock.js';
import { newFolder } from '../support/folder.js';
import { startLogged } from '../support/snapshot.js';
import { HANDLE, PATH, mockUpstream } from '../support/upstream.js';
import { jsonAnswer, mockWrites } from '../support/writes.js';

vi.mock('node:fs/promises', { spy: true });

useNock();

/** Holds all lines until the returned gate opens. */
function holdDisk(): ReturnType<typeof gate> {
  const responding = gate();
  vi.mocked(writeFile).mockImplementation(async (path, text) => {
    await responding.opened;
    writeFileSync(path as string, text as string, { flag: 'a' });
  });
  onTestFinished(() => {
    vi.mocked(writeFile).mockReset();
  });
  return responding;
}

const PUT = { method: 'PUT', headers: { Authorization: 'Basic eDp5' }, body: '{}' };

describe('a disk that does not respond', () => {
  test('delays one write only, whose line follows when the disk responds again', async () => {
    const file = join(newFolder(), 'snapshot');
    const responding = holdDisk();
    const proxy = await startLogged(file);
    mockUpstream();
    mockWrites(jsonAnswer(200, { responseCode: 1 }));
    expect((await proxy.ask(PATH, PUT)).status).toBe(200);
    expect(await proxy.line('snapshot not written')).toMatchObject({ reason: 'the disk does not respond' });
    const isFailing = async (): Promise<boolean> =>
      (await proxy.app.context.metrics.exposition()).includes('\nhandle_proxy_snapshot_failing 1\n');
    expect(await isFailing()).toBe(true);
    expect((await proxy.ask(PATH)).status).toBe(200);
    expect((await proxy.ask(PATH, PUT)).status).toBe(200);
    responding.open();
    const lines = (): string[] => readFileSync(`${file}.deleted`, 'utf8').trim().split('\n');
    const line = JSON.stringify({ key: HANDLE.toUpperCase() });
    await expect.poll(lines).toEqual([line, line]);
    await expect.poll(isFailing).toBe(false);
  });

  test('is not what a pause of the process is taken for', async () => {
    const file = join(newFolder(), 'snapshot');
    const late: unknown[] = [];
    const onFailed = () => Promise.resolve();
    const log = new DeletionLog(file, { onLate: (error) => late.push(error), onFailed });
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const added = log.add({ key: '21.T1/0' });
    // A pause ends a single timer, because the next begins after it.
    vi.advanceTimersToNextTimer();
    await added;
    expect([late, readFileSync(`${file}.deleted`, 'utf8')]).toEqual([[], '{"key":"21.T1/0"}\n']);
  });

  test('is reported once, and delays no write after the first', async () => {
    const responding = holdDisk();
    const late: unknown[] = [];
    const log = new DeletionLog(join(newFolder(), 'snapshot'), {
      onLate: (error) => late.push(error),
      onFailed: () => Promise.resolve(),
    });
    await Promise.all(['21.T1/0', '21.T1/00'].map((key) => log.add({ key })));
    expect(late).toHaveLength(1);
    expect(await isSettled(log.add({ key: '21.T1/1' }))).toBe(true);
    responding.open();
  });

  test('finds the purged prefix of a handle without comparing it with all of them', async () => {
    const log = new DeletionLog(join(newFolder(), 'snapshot'), {
      onLate: () => undefined,
      onFailed: () => Promise.resolve(),
    });
    const prefixes = Array.from({ length: 5000 }, (_, at) => `21.T1/${at}@`);
    await Promise.all(prefixes.map((prefix) => log.add({ prefix })));
    const isDeleted = await log.read();
    const [compared, cut] = [vi.spyOn(String.prototype, 'startsWith'), vi.spyOn(String.prototype, 'slice')];
    const found = ['21.T1/4711@x', '21.T1/5000@x', '21.T1/4711'].map(isDeleted);
    const steps = compared.mock.calls.length + cut.mock.calls.length;
    vi.restoreAllMocks();
    expect(found).toEqual([true, false, false]);
    expect(steps).toBeLessThan(20);
  });

  test('has at most 32 MiB, and then counts as a deletion of all, until the next snapshot', async () => {
    const file = join(newFolder(), 'snapshot');
    const log = new DeletionLog(file, { onLate: () => undefined, onFailed: () => Promise.resolve() });
    const text = (): string => readFileSync(`${file}.deleted`, 'utf8');
    const part = 'x'.repeat(2 ** 20);
    for (let at = 0; at < 40; at++) await log.add({ key: `21.T1/${at}${part}` });
    expect(text().length).toBeLessThan(33 * 2 ** 20);
    expect(text().endsWith('}\n{"prefix":""}\n')).toBe(true);
    expect(text().split('{"prefix":""}')).toHaveLength(2);
    expect((await log.read())('21.T1/OTHER')).toBe(true);
    const forgetOlder = await log.startLog();
    await log.add({ key: '21.T1/LATER' });
    await forgetOlder();
    expect(text()).toBe('{"key":"21.T1/LATER"}\n');
    expect(['21.T1/LATER', '21.T1/OTHER'].map(await log.read())).toEqual([true, false]);
  });

  test('has at most 10,000 deletions waiting, and more count as a deletion of all', async () => {
    const file = join(newFolder(), 'snapshot');
    const responding = holdDisk();
    const log = new DeletionLog(file, { onLate: () => undefined, onFailed: () => Promise.resolve() });
    const added = Array.from({ length: 10_003 }, (_, at) => log.add({ key: `21.T1/${at}` }));
    responding.open();
    await Promise.all(added);
    const lines = readFileSync(`${file}.deleted`, 'utf8').trim().split('\n');
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      { key: '21.T1/0' },
      { prefix: '' },
      { key: '21.T1/10001' },
      { key: '21.T1/10002' },
    ]);
    expect((await log.read())('21.T1/5')).toBe(true);
  });
});
