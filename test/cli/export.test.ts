// An export that is interrupted: nothing half is taken for a whole, and the next run continues.
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { startProgram } from '../support/built-proxy.js';
import { cli } from '../support/cli.js';
import { newFolder } from '../support/snapshot.js';

const lineOf = (at: number, from = 'now'): string => `{"handle":"21.T1/${at}","values":["${from}"]}\n`;
const linesOf = (first: number, end: number, from?: string): string =>
  Array.from({ length: end - first }, (_, at) => lineOf(first + at, from)).join('');

/** An admin listener that answers each export with this. */
async function adminWith(answer: (res: ServerResponse) => void): Promise<string> {
  const server = createServer((_req, res) => {
    answer(res);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise((resolve) => server.once('listening', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const argsOf = (output: string, admin: string): string[] => [
  'export',
  '--prefix',
  '21.T1',
  '--output',
  output,
  '--admin',
  admin,
];

test('continues after kill -9 with the records that it lacks', async () => {
  const output = join(newFolder(), 'records.ndjson');
  const partial = `${output}.21.T1.partial`;
  const stalled = await adminWith((res) => res.write(linesOf(0, 100, 'before')));
  const { child, exited } = startProgram(['dist/main.js', ...argsOf(output, stalled)], {});
  await expect
    .poll(() => existsSync(partial) && readFileSync(partial, 'utf8'))
    .toBe(linesOf(0, 100, 'before'));
  child.kill('SIGKILL');
  await exited;
  expect(existsSync(output)).toBe(false);
  // As when the process is killed in the middle of a line.
  writeFileSync(partial, lineOf(100).slice(0, 25), { flag: 'a' });
  const whole = await adminWith((res) => res.end(linesOf(50, 200)));
  expect(await cli(argsOf(output, whole))).toMatchObject({
    code: 0,
    stderr: '200 records exported, 100 of them by an earlier run\n',
  });
  expect(readFileSync(output, 'utf8')).toBe(linesOf(0, 100, 'before') + linesOf(100, 200));
  expect(readdirSync(join(output, '..'))).toEqual(['records.ndjson']);
});

test('is not complete when the connection breaks, and continues, compressed too', async () => {
  const output = join(newFolder(), 'records.ndjson.gz');
  const broken = await adminWith((res) => res.write(linesOf(0, 100), () => res.destroy()));
  const { code, stderr } = await cli(argsOf(output, broken));
  expect([code, existsSync(output)]).toEqual([1, false]);
  expect(stderr).toMatch(/records\.ndjson\.gz is not complete \(.+\); run the same command to continue/);
  const whole = await adminWith((res) => res.end(linesOf(0, 200)));
  expect(await cli(argsOf(output, whole))).toMatchObject({ code: 0 });
  expect(gunzipSync(readFileSync(output)).toString()).toBe(linesOf(0, 200));
});

test('takes from a compressed file that was cut off what can be read', async () => {
  const output = join(newFolder(), 'records.ndjson.gz');
  writeFileSync(`${output}.21.T1.partial`, gzipSync(linesOf(0, 5000, 'before')).subarray(0, -20));
  const whole = await adminWith((res) => res.end(linesOf(0, 5000)));
  expect(await cli(argsOf(output, whole))).toMatchObject({ code: 0 });
  const lines = gunzipSync(readFileSync(output)).toString().trimEnd().split('\n');
  expect(new Set(lines.map((line) => (JSON.parse(line) as { handle: string }).handle)).size).toBe(5000);
  expect(lines).toHaveLength(5000);
});
