// Moved handles: a table of new URLs that answers before the repository, for every interface.
import { spawnSync } from 'node:child_process';
import { appendFileSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import nock from 'nock';
import { expect, describe, it, vi } from 'vitest';
import { loadStartConfig } from '../../src/app/config.js';
import { createLogger } from '../../src/observe/logger.js';
import { readTable } from '../../src/plugins/moved/table.js';
import { runToEnd } from '../../src/time-slicer.js';
import { basic } from '../support/demo.js';
import { fixed } from '../support/fixed.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { sliceBySteps } from '../support/slices.js';
import { newFolder } from '../support/folder.js';
import { UPSTREAM_URL } from '../support/upstream.js';

vi.mock('node:fs/promises', { spy: true });

useNock();

const DSPACE = 'https://repository.test';
const LOGIN = { Authorization: basic('300:123456/USER', 'secret') };
const NEW = 'https://new.test/item/1';

const upstreams = JSON.stringify([
  { prefixes: '123456', kind: 'dspace', url: `${DSPACE}/server` },
  { prefixes: '20.1', kind: 'template', url: 'https://journal.test/item/{suffix}' },
  { prefixes: '21.T11998', url: UPSTREAM_URL },
]);

/** Writes a table as operators do: a new file in the place of the old one. */
function write(file: string, lines: readonly string[]): void {
  writeFileSync(`${file}.new`, `${lines.join('\n')}\n`);
  renameSync(`${file}.new`, file);
}

const LOADED = 'moved handles loaded';

/** Starts a proxy with a table that it reads again soon after a change. */
async function startWith(lines: readonly string[], env: Record<string, string> = {}, loaded = LOADED) {
  const file = join(newFolder(), 'moved.csv');
  write(file, lines);
  const log: Record<string, unknown>[] = [];
  const logger = createLogger({
    level: 'info',
    destination: { write: (line: string) => void log.push(JSON.parse(line) as Record<string, unknown>) },
  });
  const proxy = await startProxy(
    { UPSTREAMS: upstreams, MOVED_FILE: file, ...fixed({ moved: { everyMs: 10 } }), ...env },
    { logger },
  );
  const lineOf = (msg: string, count: number) =>
    expect.poll(() => log.filter((line) => line['msg'] === msg), { timeout: 20_000 }).toHaveLength(count);
  await lineOf(loaded, 1);
  return { ...proxy, file, log, lineOf };
}

const dspaceHas = (path: string, url: string): nock.Scope =>
  nock(DSPACE)
    .get(`/server/resolve/${path}`)
    .reply(200, JSON.stringify([url]));

const locationOf = async ({ ask }: Awaited<ReturnType<typeof startWith>>, target: string) =>
  (await ask(target)).headers['location'];

describe('a moved handle', () => {
  it('has its new URL in every interface, and its repository is not asked', async () => {
    const proxy = await startWith([`123456/1,${NEW}`]);
    const value = { index: 1, type: 'URL', data: { format: 'string', value: NEW } };
    expect(await locationOf(proxy, '/123456/1')).toBe(NEW);
    expect(JSON.parse((await proxy.ask('/api/handles/123456/1')).text)).toMatchObject({ values: [value] });
    expect(JSON.parse((await proxy.ask('/api/v2/handles/123456/1', { headers: LOGIN })).text)).toMatchObject([
      { idx: 1, type: 'URL', parsed_data: NEW },
    ]);
    const batch = await proxy.ask('/api/resolve', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"handles":["123456/1"]}',
    });
    expect(batch.text).toContain(NEW);
    expect((await proxy.ask('/api/handles/123456/1?auth=true')).text).toContain(NEW);
  });

  it('leads to the address of its prefix, unless the handle itself has a line', async () => {
    const proxy = await startWith(['20.1/*,https://new.test/{suffix}?from={handle}', `20.1/one,${NEW}`]);
    expect(await locationOf(proxy, '/20.1/two')).toBe('https://new.test/two?from=20.1%2Ftwo');
    expect(await locationOf(proxy, '/20.1/one')).toBe(NEW);
  });

  it('leaves all other handles to their repository', async () => {
    dspaceHas('123456/2', 'https://repository.test/handle/2');
    const proxy = await startWith([`123456/1,${NEW}`]);
    expect(await locationOf(proxy, '/123456/2')).toBe('https://repository.test/handle/2');
  });
});

describe('a changed file', () => {
  it('counts for handles in the cache too: added, changed and removed lines', async () => {
    dspaceHas('123456/1', 'https://repository.test/handle/1');
    dspaceHas('123456/2', 'https://repository.test/handle/2');
    const proxy = await startWith([`123456/2,${NEW}`]);
    expect(await locationOf(proxy, '/123456/1')).toBe('https://repository.test/handle/1');
    expect(await locationOf(proxy, '/123456/2')).toBe(NEW);
    expect(await locationOf(proxy, '/20.1/x')).toBe('https://journal.test/item/x');
    write(proxy.file, [`123456/1,${NEW}`, '20.1/*,https://new.test/{suffix}']);
    await proxy.lineOf('moved handles loaded', 2);
    expect(await locationOf(proxy, '/123456/1')).toBe(NEW);
    expect(await locationOf(proxy, '/123456/2')).toBe('https://repository.test/handle/2');
    expect(await locationOf(proxy, '/20.1/x')).toBe('https://new.test/x');
  });

  it('counts for all of its lines, also if a cache in front confirms no purge', async () => {
    const unconfirmed = `${LOADED}, but the cache may have older records`;
    const env = { HTTP_SHARED_MAX_AGE: '1d', FRONTS_URLS: 'http://front.test' };
    const proxy = await startWith([`123456/0,${NEW}`], env, unconfirmed);
    const names = Array.from({ length: 300 }, (_, at) => `20.1/${at}`);
    dspaceHas('123456/1', 'https://repository.test/handle/1');
    for (const name of ['123456/1', ...names]) expect(await locationOf(proxy, `/${name}`)).not.toBe(NEW);
    write(
      proxy.file,
      ['123456/*', ...names].map((name) => `${name},${NEW}`),
    );
    await proxy.lineOf(unconfirmed, 2);
    for (const name of ['123456/1', ...names]) expect(await locationOf(proxy, `/${name}`)).toBe(NEW);
  });

  it('is not read while another program writes to it in place', async () => {
    const proxy = await startWith([`123456/0,${NEW}`]);
    let written = 0;
    vi.mocked(stat).mockImplementation((path) => {
      // Between two looks at the file, the program writes another line.
      if (path === proxy.file && written < 5) appendFileSync(proxy.file, `123456/${++written},${NEW}\n`);
      return new Promise((resolve) => {
        resolve(statSync(path));
      });
    });
    await proxy.lineOf('moved handles loaded', 2);
    vi.mocked(stat).mockReset();
    expect(proxy.log.at(-1)).toMatchObject({ handles: 6 });
  });

  it('is rejected with the number of a bad line, and the table in use stays', async () => {
    const proxy = await startWith([`123456/1,${NEW}`]);
    write(proxy.file, [`123456/1,https://other.test/`, '123456/2;https://new.test/2']);
    await proxy.lineOf('moved handles rejected, keeping the current table', 1);
    expect(proxy.log).toContainEqual(
      expect.objectContaining({
        file: proxy.file,
        reason: 'line 2: give handle,URL or prefix/*,URL, without quotes',
      }),
    );
    expect(await locationOf(proxy, '/123456/1')).toBe(NEW);
  });

  it('is read and compared in time slices, so that requests do not wait for it', async () => {
    const lines = Array.from({ length: 1000 }, (_, at) => `123456/${at},${NEW}`);
    const stepsSoFar = sliceBySteps();
    const proxy = await startWith(lines);
    expect(stepsSoFar()).toBeLessThan(1000);
    write(proxy.file, lines.slice(1));
    await proxy.lineOf('moved handles loaded', 2);
    // Each line is parsed, indexed by its cache key, and compared in both directions.
    expect(stepsSoFar()).toBeGreaterThan(4 * 999);
  });

  it('counts once it can be read, and the log says once that it cannot', async () => {
    const proxy = await startWith([`123456/1,${NEW}`]);
    const denied = Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' });
    for (let times = 0; times < 3; times++) vi.mocked(readFile).mockRejectedValueOnce(denied);
    write(proxy.file, ['123456/1,https://other.test/']);
    await proxy.lineOf('moved handles loaded', 2);
    expect(await locationOf(proxy, '/123456/1')).toBe('https://other.test/');
    await proxy.lineOf('moved handles rejected, keeping the current table', 1);
  });

  it('of more than 16 MiB is not read', async () => {
    const proxy = await startWith([`123456/1,${NEW}`]);
    write(proxy.file, ['x'.repeat(16 * 2 ** 20)]);
    await proxy.lineOf('moved handles rejected, keeping the current table', 1);
    expect(proxy.log.at(-1)).toMatchObject({ reason: 'it has more than 16777216 bytes' });
    expect(await locationOf(proxy, '/123456/1')).toBe(NEW);
  });

  it('is not read while it is a named pipe, and is read once it is a file again', async () => {
    const proxy = await startWith([`123456/1,${NEW}`]);
    expect(spawnSync('mkfifo', [`${proxy.file}.pipe`]).status).toBe(0);
    renameSync(`${proxy.file}.pipe`, proxy.file);
    await proxy.lineOf('moved handles rejected, keeping the current table', 1);
    expect(proxy.log.at(-1)).toMatchObject({ reason: 'it is not a regular file' });
    write(proxy.file, ['123456/1,https://other.test/']);
    await proxy.lineOf('moved handles loaded', 2);
    expect(await locationOf(proxy, '/123456/1')).toBe('https://other.test/');
  });

  it('is left to the running proxy when the configuration is reloaded, even if it is bad', () => {
    const file = join(newFolder(), 'moved.csv');
    write(file, ['bad']);
    const env = { UPSTREAMS: upstreams, MOVED_FILE: file };
    const readFile = vi.fn((path: string) => readFileSync(path, 'utf8'));
    expect(() => loadStartConfig({ env, readFile, isReload: true })).not.toThrow();
    expect(readFile).not.toHaveBeenCalled();
  });
});

describe('a bad table', () => {
  const readText = (text: string) => runToEnd(readTable(text, (handle) => !handle.startsWith('21.T11998/')));

  it.each([
    [
      'a handle that takes writes',
      `21.T11998/1,${NEW}`,
      'no server of the kind dspace or template has this prefix; change records of a Handle server there',
    ],
    ['no URL', '20.1/1,', 'give handle,URL or prefix/*,URL, without quotes'],
    ['another scheme', '20.1/1,javascript:alert(1)', 'give handle,URL or prefix/*,URL, without quotes'],
    [
      'a control character',
      '20.1/1,https://new.test/\u0007x',
      'give an http or https URL of at most 8000 characters',
    ],
    [
      'a URL longer than a redirect',
      `20.1/1,https://new.test/${'x'.repeat(8000)}`,
      'give an http or https URL of at most 8000 characters',
    ],
    [
      'a name without a slash',
      `20.1,${NEW}`,
      'give a handle, such as 20.500.1/1, or a prefix, such as 20.500.1/*',
    ],
    ['quotes', `"20.1/1",${NEW}`, 'give a handle, such as 20.500.1/1, or a prefix, such as 20.500.1/*'],
    ['more characters than a handle and a URL', 'x'.repeat(16_385), 'it has more than 16384 characters'],
    ['a handle that is given twice', `20.1/1,${NEW}\n20.1/1,${NEW}`, '20.1/1 is given twice'],
    [
      'a slash in a prefix',
      `20.1//*,${NEW}`,
      'give a handle, such as 20.500.1/1, or a prefix, such as 20.500.1/*',
    ],
    [
      'characters of another encoding',
      Buffer.from(`20.1/1,${NEW}\n20.1/2,https://new.test/M\xfcller`, 'latin1').toString(),
      'it is not UTF-8, or has U+FFFD: save the file in UTF-8',
    ],
  ])('names the line with %s', (_, text, problem) => {
    const lines = text.split('\n').length;
    expect(readText(`# moved in 2026\n${text}`)).toBe(`line ${lines + 1}: ${problem}`);
  });

  it('has more lines than are read', () => {
    expect(readText('\n'.repeat(100_001))).toBe('it has more than 100000 lines');
  });

  it('ends the start with the line', () => {
    const file = join(newFolder(), 'moved.csv');
    write(file, [`21.T11998/1,${NEW}`]);
    const problem = `${file} is no table of moved handles: line 1: no server of the kind dspace or template has this prefix`;
    const load = (path: string) => () =>
      loadStartConfig({
        env: { UPSTREAMS: upstreams, MOVED_FILE: path },
        readFile: (each) => readFileSync(each, 'utf8'),
      });
    expect(load(file)).toThrow(problem);
    expect(load(`${file}.none`)).toThrow('cannot be read');
  });

  it('may contain comments, empty lines, a byte order mark, commas in handles and Windows line ends', () => {
    const text = `\uFEFF# handle,URL\r\n\r\n20.1/a,b , ${NEW}\r\n`;
    expect(readText(text)).toEqual({ handles: new Map([['20.1/a,b', NEW]]), prefixes: new Map() });
  });
});
