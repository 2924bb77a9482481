// Commands whose --proxy is another program, or a public listener that misbehaves.
import { join } from 'node:path';
import { writeFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fetchText, readBytes } from '../../src/cli/client.js';
import { cli, cliWith, withoutProgress } from '../support/cli.js';
import { startHostileServer, writeForEver, writeSlowly } from '../support/hostile-server.js';
import { newFolder } from '../support/folder.js';

const OK = 'HTTP/1.1 200 OK\r\nConnection: close\r\n';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Runs each command that reads text of the public listener. */
async function runAll(PROXY_URL: string) {
  const env = { PROXY_URL, ADMIN_URL: 'http://127.0.0.1:1' };
  return [
    await cli(['resolve', '21.T1/a'], env),
    await cliWith('21.T1/a\n', ['resolve', '-'], env),
    await cli(['warm', '--prefix', '21.T1'], env),
  ];
}

describe('a public listener', () => {
  test.each([
    ['endless', '', 'x'.repeat(65_536)],
    ['endless once decompressed', 'Content-Encoding: gzip\r\n', gzipSync(Buffer.alloc(65 * 1024 ** 2))],
  ])('whose response is %s makes commands fail', async (_, headers, piece) => {
    const proxy = await startHostileServer((socket) => {
      socket.write(`${OK}${headers}\r\n`);
      writeForEver(socket, piece);
    });
    for (const { code, stdout, stderr } of await runAll(proxy)) {
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(/: the response cannot be read: it has more than 67108864 bytes\n$/);
    }
  });

  test('that closes the connection in the middle makes commands fail', async () => {
    const proxy = await startHostileServer((socket) => socket.end(`${OK}Content-Length: 9\r\n\r\n{}`));
    for (const { code, stdout, stderr } of await runAll(proxy)) {
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(/: the response cannot be read: .+\n$/);
    }
  });

  test.each([
    ['nothing', ''],
    ['headers that never end', `${OK}X-A: `],
    ['a byte from time to time', `${OK}\r\n`],
  ])('that sends %s is left after a time limit', async (_, head) => {
    const proxy = await startHostileServer((socket) => {
      socket.write(head);
      if (head !== '') writeSlowly(socket);
    });
    await expect(fetchText(proxy, {}, 50)).rejects.toThrow(/aborted due to timeout/);
  });

  test('is read one piece beyond the maximum length, which shows that it is longer', async () => {
    const pieces = Array.from({ length: 9 }, () => Buffer.alloc(4));
    expect((await readBytes(pieces, 8)).length).toBe(12);
    expect((await readBytes(pieces.slice(0, 2), 8)).length).toBe(8);
  });

  test('is left after the same limit when garbage has been collected', async () => {
    const proxy = await startHostileServer((socket) => {
      socket.write(`${OK}\r\n`);
      writeSlowly(socket);
    });
    const collecting = setInterval(collectGarbage, 20);
    onTestFinished(() => {
      clearInterval(collecting);
    });
    const read = fetchText(proxy, { redirect: 'error' }, 500);
    await expect(read).rejects.toThrow(/aborted due to timeout/);
  });

  test.each([
    ['a page', 'HTTP/1.1 200 OK', '<html></html>'],
    ['a page that says not found', 'HTTP/1.1 404 Not Found', '<html></html>'],
    ['another JSON object', 'HTTP/1.1 404 Not Found', '{"error":404}'],
    ['nothing', 'HTTP/1.1 200 OK', ''],
  ])('that responds with %s warms no handle', async (_, status, body) => {
    const proxy = await startHostileServer((socket) =>
      socket.end(`${status}\r\nConnection: close\r\n\r\n${body}`),
    );
    const list = join(newFolder(), 'handles');
    writeFileSync(list, '21.T1/a\n');
    const { code, stdout, stderr } = await cli(['warm', list], { PROXY_URL: proxy });
    expect([code, stdout]).toEqual([1, '0 warmed, 0 not found, 1 failed, 0 not due; 1 left\n']);
    const message = '21.T1/a: not a response of the record interface\n1 handle failed\n';
    expect(withoutProgress(stderr)).toBe(message);
  });

  test.each([
    ['a page', '<html></html>'],
    ['nothing', ''],
    ['null', 'null'],
    ['an object without values', '{"responseCode":1,"handle":"21.T1/a"}'],
  ])('that responds with %s has not resolved a handle', async (_, body) => {
    const proxy = await startHostileServer((socket) => socket.end(`${OK}\r\n${body}`));
    for (const place of [
      ['--proxy', proxy],
      ['--direct', proxy],
    ]) {
      const { code, stdout, stderr } = await cli(['resolve', '21.T1/a', '--admin', proxy, ...place]);
      expect([code, stdout]).toEqual([1, `${body}\n`]);
      expect(stderr).toMatch(/\nthe response is not a record\n$/);
    }
  });

  test.each([
    ['no objects', '[null]'],
    ['objects without members', '[{}]'],
    ['elements without a body', '[{"handle":"21.T1/a","status":200,"body":null}]'],
  ])('that responds with %s to a batch makes it fail', async (_, body) => {
    const proxy = await startHostileServer((socket) => socket.end(`${OK}\r\n${body}`));
    for (const form of ['--json', '--plain'])
      expect(await cliWith('21.T1/a\n', ['resolve', '-', '--proxy', proxy, form])).toEqual({
        ...{ code: 1, stdout: '', stderr: 'the response of the proxy is incomplete\n' },
      });
  });

  test('counts an element of a batch without a record as failed', async () => {
    const element = '{"handle":"21.T1/a","status":200,"body":{"responseCode":1}}';
    const proxy = await startHostileServer((socket) => socket.end(`${OK}\r\n[${element}]`));
    expect(await cliWith('21.T1/a\n', ['resolve', '-', '--proxy', proxy])).toEqual({
      ...{ code: 1, stdout: `${element}\n`, stderr: '0 resolved, 1 failed\n1 handle failed\n' },
    });
  });
});
